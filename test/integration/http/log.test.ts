import { rm } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { eventually } from '../../support/processes/operator.ts';
import { startScriptedModel } from '../../support/fakes/scriptedModel.ts';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { apiClient, TEST_KEY, writeModelsFile } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

test('the log names each request by its id, at the level debug, and holds no key, no query and no text of a session at any', async () => {
  const folder = await temporaryFolder();
  const model = await startScriptedModel([{ text: 'private answer' }, { fault: 'malformed_json' }]);
  const server = startServerProcess({
    DATA_DIR: folder,
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'trace',
    MODEL_MAX_RETRIES: '0',
  });
  try {
    const client = apiClient(await server.ready, TEST_KEY);
    const { agent_id } = (
      await client.post('/v1/agents', {
        name: 'private name',
        instruction: 'private instruction',
        model: 'scripted',
      })
    ).body.data;
    const run = `/v1/agents/${agent_id}/run`;
    expect((await client.post(run, { input: 'private input' })).status).toBe(200);
    expect(
      (await client.post(run, { input: 'private input' }, { 'x-request-id': 'failing-request' }))
        .status,
    ).toBe(502);
    expect((await client.post('/v1/agents', '{"private": rubbish')).status).toBe(400);
    await client.get('/v1/agents/unknown?after=private', {
      'x-request-id': 'odd-request',
      'x-api-key': 'private-wrong-key',
    });
    await eventually(
      () => Promise.resolve(server.errors()),
      (log) => log.includes('odd-request'),
    );

    const lines = server
      .errors()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'debug',
        request_id: 'odd-request',
        method: 'GET',
        path: '/v1/agents/unknown',
        status: 401,
      }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        request_id: 'failing-request',
        code: 'model_error',
        msg: 'a turn ended without an answer',
      }),
    );
    expect(server.errors()).not.toContain(TEST_KEY);
    expect(server.errors()).not.toContain('private');
  } finally {
    server.kill('SIGKILL');
    await server.exited;
    await model.close();
    await rm(folder, { recursive: true });
  }
});
