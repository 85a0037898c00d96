import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { currentGeneration, generationFile } from '../../infra/sqlite/readModels/generations.ts';
import { expectFailure } from '../support/http/failures.ts';
import { apiClient, TEST_KEY, type Client } from '../support/http/service.ts';
import { eventually } from '../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let server: ServerProcess;
let client: Client;
let other: DatabaseSync | undefined;

beforeEach(async () => {
  folder = await temporaryFolder();
  server = startServerProcess({
    DATA_DIR: join(folder, 'data'),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'info',
    VISIBILITY_WAIT_MS: '500',
  });
  client = apiClient(await server.ready, TEST_KEY);
  // A machine that is slow shows the first key later than this service waits for it.
  await eventually(
    () => client.get('/v1/models'),
    ({ status }) => status === 200,
  );
});
afterEach(async () => {
  other?.close();
  other = undefined;
  server.kill('SIGKILL');
  await server.exited;
  await rm(folder, { recursive: true });
});

const ready = () => client.get('/health/ready');

test('read models that another process keeps locked are degraded and never stale, and ready again when it lets go', async () => {
  const agent = { name: 'A', instruction: 'x', model: 'offline-echo' };
  const data = join(folder, 'data');
  expect((await client.post('/v1/agents', agent)).status).toBe(200);
  expect((await ready()).body.data).toMatchObject({
    status: 'ready',
    projection: { caught_up: true },
  });

  other = new DatabaseSync(generationFile(data, currentGeneration(data)!), { timeout: 5_000 });
  other.exec('BEGIN IMMEDIATE');
  const late = await client.post('/v1/agents', agent);
  expect(late.status).toBe(200);
  const { agent_id } = late.body.data;
  // The index of words may meet the lock first: readiness is degraded then, but not yet late.
  const locked = await eventually(
    ready,
    ({ body }) => body.data?.projection.caught_up === false && body.data.projection.reason,
  );
  expect(locked.status).toBe(200);
  expect(locked.body.data.projection).toMatchObject({
    caught_up: false,
    lag_events: null,
    lag_ms: expect.any(Number),
    reason: expect.stringContaining('database is locked'),
    parked_streams: [],
  });
  const list = expectFailure(await client.get('/v1/agents'), 'store_unavailable');
  expect(list.error).toContain('database is locked');
  // The log has the new agent.
  expect((await client.get(`/v1/agents/${agent_id}`)).body.data).toMatchObject({ agent_id });
  expect((await client.post(`/v1/agents/${agent_id}/run`, { input: 'hi' })).status).toBe(200);
  expectFailure(await client.get('/v1/sessions'), 'store_unavailable');

  other.exec('ROLLBACK');
  // The turn is indexed a little later.
  const again = await eventually(
    ready,
    ({ body }) => body.data?.status === 'ready' && !body.data.projection.unindexed_turns,
  );
  expect(again.body.data.projection).toEqual({ caught_up: true, parked_streams: [] });
  expect((await client.get(`/v1/agents/${agent_id}`)).status).toBe(200);
  expect((await client.get('/v1/agents')).body.data).toHaveLength(2);
  await eventually(
    async () => server.errors(),
    (log) => log.includes('The read models follow the log again'),
  );
});
