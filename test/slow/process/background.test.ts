/** Runs in the background, and who waits for them, when their process stops or is killed. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startScriptedModel, type ScriptedModel } from '../../support/fakes/scriptedModel.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import { apiClient, TEST_KEY, writeModelsFile, type Client } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let model: ScriptedModel;
let server: ServerProcess;
let client: Client;

async function start(more: Record<string, string> = {}): Promise<void> {
  server = startServerProcess({
    DATA_DIR: join(folder, 'data'),
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'warn',
    ...more,
  });
  client = apiClient(await server.ready, TEST_KEY);
}

beforeEach(async () => {
  folder = await temporaryFolder();
  model = await startScriptedModel({ fault: 'never_answer' });
});
afterEach(async () => {
  server.kill('SIGKILL');
  await server.exited;
  await model.close();
  await rm(folder, { recursive: true });
});

/** Begins a run in the background; where its turn is to be had. */
async function begin(): Promise<string> {
  const body = { name: 'Test', instruction: 'Be brief.', model: 'scripted' };
  const { agent_id } = (await client.post('/v1/agents', body)).body.data;
  const begun = await client.post(
    `/v1/agents/${agent_id}/run`,
    { input: 'hi' },
    { prefer: 'respond-async' },
  );
  const asked = model.received(1);
  expect(begun.status).toBe(202);
  await asked;
  return begun.headers.get('location')!;
}
const read = async (turn: string, prefer = '') => (await client.get(turn, { prefer })).body.data;

test('kill -9 leaves a turn that is told as interrupted after the next start', async () => {
  await start();
  const turn = await begin();
  expect((await read(turn)).status).toBe('running');
  server.kill('SIGKILL');
  await server.exited;
  await start();
  expect(await read(turn, 'wait=20')).toMatchObject({
    status: 'interrupted',
    error: { code: 'turn_interrupted', reason: 'crash' },
  });
});

test('a shut-down lets a run in the background finish within the grace time, and tells who waits at once how it is', async () => {
  await start({ SHUTDOWN_GRACE_MS: '60000' });
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  model.use(async () => {
    await promise;
    return { text: 'In time.' };
  });
  const turn = await begin();
  const waiting = read(turn, 'wait=60');
  await client.get('/health/live');
  const began = performance.now();
  server.kill('SIGTERM');
  expect((await waiting).status).toBe('running');
  expect(performance.now() - began).toBeLessThan(20_000);
  answer();
  expect(await server.exited).toBe(0);
  await start();
  expect(await read(turn)).toMatchObject({ status: 'completed', output: 'In time.' });
});

test('a shut-down whose grace time is over records it as its own, not as a cancellation', async () => {
  await start({ SHUTDOWN_GRACE_MS: '100' });
  const turn = await begin();
  server.kill('SIGTERM');
  expect(await server.exited).toBe(0);
  await start();
  expect(await read(turn)).toMatchObject({
    status: 'interrupted',
    error: { code: 'turn_interrupted', reason: 'shutdown' },
  });
});
