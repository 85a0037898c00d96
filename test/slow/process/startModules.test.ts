/** Libraries that a service loads although it may never use them. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { startScriptedModel } from '../../support/fakes/scriptedModel.ts';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { apiClient, TEST_KEY } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const REPORTER = new URL('../../support/processes/loadedUndici.mjs', import.meta.url);

/** Each thread, and whether it has loaded Node's own undici, as it said when it ended. */
const reported = (log: string): { thread: string; undici: boolean }[] =>
  log
    .split('\n')
    .filter((line) => line.startsWith('{"thread":'))
    .map((line) => JSON.parse(line));

test("no thread loads Node's own undici, neither for its start nor for a run", async () => {
  const folder = await temporaryFolder();
  const model = await startScriptedModel({ text: 'Hi' });
  model.list({ object: 'list', data: [{ id: 'listed' }] });
  const server = startServerProcess({
    DATA_DIR: join(folder, 'data'),
    OPENAI_BASE_URL: model.baseUrl,
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'warn',
    NODE_OPTIONS: `--import ${REPORTER.href}`,
  });
  try {
    const client = apiClient(await server.ready, TEST_KEY);
    const agent = { name: 'Test', instruction: 'Be brief.', model: 'listed' };
    const { agent_id } = (await client.post('/v1/agents', agent)).body.data;
    const { body } = await client.post(`/v1/agents/${agent_id}/run`, { input: 'hi' });
    expect(body.data).toMatchObject({ output: 'Hi' });
  } finally {
    server.kill('SIGTERM');
    await server.exited;
    await model.close();
    await rm(folder, { recursive: true });
  }
  const threads = reported(server.errors());
  expect(threads.filter(({ undici }) => undici)).toEqual([]);
  const names = threads.map(({ thread }) => thread);
  expect(names).toEqual(expect.arrayContaining(['', 'event-store-writer', 'projector']));
}, 60_000);
