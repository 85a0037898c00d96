/** A service in one process whose log was exchanged under it, or while it was down. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { changeableLog, KINDS_OF_LOGS } from '../../support/stores/changedLogs/logs.ts';
import { startNodeOnFile } from '../../support/stores/changedLogs/nodeOnFile.ts';
import { apiClient, TEST_KEY, type Client } from '../../support/http/service.ts';
import { startCliWith } from '../../support/processes/cliProcess.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { freePort } from '../../support/processes/freePort.ts';
import { eventually } from '../../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const AGENT = { name: 'Echo', instruction: 'Answer.', model: 'offline-echo' };
const TIME_LIMIT_MS = 60_000;
const CHANGED = expect.stringMatching(/The log has changed: .* log accept-restored/);

let folder: string;
let env: Record<string, string>;
let server: ServerProcess | undefined;
beforeEach(async () => {
  folder = await temporaryFolder();
  env = { DATA_DIR: join(folder, 'data'), BOOTSTRAP_API_KEY: TEST_KEY };
  await mkdir(env['DATA_DIR']!);
});
afterEach(async () => {
  await stop();
  await rm(folder, { recursive: true });
});

async function start(): Promise<Client> {
  server = startServerProcess(env);
  return apiClient(await server.ready, TEST_KEY);
}

async function stop(): Promise<void> {
  server?.kill('SIGTERM');
  await server?.exited;
  server = undefined;
}

async function createAndRun(client: Client): Promise<string> {
  const { body } = await client.post('/v1/agents', AGENT);
  const { agent_id } = body.data as { agent_id: string };
  await runs(client, agent_id);
  return agent_id;
}

/** A run is answered, and its session is shown. */
async function runs(client: Client, agent: string): Promise<void> {
  const run = await client.post(`/v1/agents/${agent}/run`, { input: 'Hello' });
  expect(run).toMatchObject({ status: 200 });
  const { session_id } = run.body.data as { session_id: string };
  expect((await client.get(`/v1/sessions/${session_id}`)).status).toBe(200);
}

const agentsOf = async (client: Client): Promise<string[]> =>
  ((await client.get('/v1/agents')).body.data as { agent_id: string }[]).map(
    ({ agent_id }) => agent_id,
  );

async function accept(...more: string[]): Promise<void> {
  const cli = startCliWith(env, 'log', 'accept-restored', '--reason', 'a test', ...more);
  expect(await cli.ended).toMatchObject({
    code: 0,
    out: expect.stringContaining('It stands for: '),
  });
}

const isReady = (client: Client) =>
  eventually(
    () => client.get('/health/ready'),
    ({ body }) => body.data?.status === 'ready',
  );

/** A service that runs says so and writes nothing. */
async function expectRefusal(client: Client, agent: string): Promise<void> {
  const ready = await eventually(
    () => client.get('/health/ready'),
    // The store is away while it is exchanged.
    ({ body }) => body.error?.includes('has changed') === true,
  );
  expect(expectFailure(ready, 'store_unavailable').error).toEqual(CHANGED);
  const writes = [
    client.post('/v1/agents', AGENT),
    client.post(`/v1/agents/${agent}/run`, { input: 'Hello' }),
  ];
  for (const { status, body, headers } of await Promise.all(writes)) {
    expect([status, body.code]).toEqual([503, 'log_changed']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  }
}

/** A start waits and says why. */
async function expectWait(): Promise<void> {
  const PORT = String(await freePort());
  server = startServerProcess({ ...env, PORT });
  const waiting = apiClient(`http://127.0.0.1:${PORT}`, TEST_KEY);
  const ready = await eventually(
    () => waiting.get('/health/ready').catch(() => undefined),
    (reply) => reply?.body.error?.includes('has changed') === true,
  );
  expect(ready).toMatchObject({ status: 503, body: { error: CHANGED } });
  expect((await waiting.post('/v1/agents', AGENT)).status).toBe(503);
}

describe('a service over EventStoreDB', () => {
  let node: Awaited<ReturnType<typeof startNodeOnFile>>;
  let known: string;
  let lost: string;
  let client: Client;
  let older: () => Promise<void>;
  let right: () => Promise<void>;
  beforeEach(async () => {
    node = await startNodeOnFile(folder);
    env['EVENTSTOREDB_URL'] = node.connectionString;
    client = await start();
    known = await createAndRun(client);
    older = await node.copy('older');
    lost = await createAndRun(client);
    right = await node.copy('right');
  }, TIME_LIMIT_MS);
  afterEach(() => node.close());

  test(
    'that runs refuses an older copy and a wiped log, goes on with the right one, and with the older copy once it was declared',
    async () => {
      await node.exchange(older);
      await expectRefusal(client, known);
      expect(await agentsOf(client)).toEqual([known, lost]);
      await node.exchange(node.wipe);
      await expectRefusal(client, known);
      await node.exchange(right);
      await isReady(client);
      await runs(client, lost);
      await node.exchange(older);
      await expectRefusal(client, known);
      await accept();
      await isReady(client);
      expect(await agentsOf(client)).toEqual([known]);
      await runs(client, known);
      expect(await client.post(`/v1/agents/${lost}/run`, { input: 'Hello' })).toMatchObject({
        status: 404,
      });
    },
    TIME_LIMIT_MS,
  );

  test(
    'that starts waits before an older copy and a wiped log, and begins with what was declared',
    async () => {
      await stop();
      await node.exchange(older);
      await expectWait();
      await stop();
      await node.exchange(node.wipe);
      await expectWait();
      await accept();
      client = apiClient(await server!.ready, TEST_KEY);
      await isReady(client);
      expect(await agentsOf(client)).toEqual([]);
      await createAndRun(client);
      await stop();
      client = await start();
      await isReady(client);
      expect(await agentsOf(client)).toHaveLength(1);
    },
    TIME_LIMIT_MS,
  );
});

test(
  'a service whose events.db was replaced by an older copy waits, and begins once that was declared',
  async () => {
    const log = changeableLog(KINDS_OF_LOGS[0]!, env['DATA_DIR']!);
    let client = await start();
    const known = await createAndRun(client);
    await stop();
    const putBack = await log.copy('older');
    client = await start();
    await createAndRun(client);
    await stop();
    await putBack();
    await expectWait();
    await accept();
    client = apiClient(await server!.ready, TEST_KEY);
    await isReady(client);
    expect(await agentsOf(client)).toEqual([known]);
    await runs(client, known);
    await createAndRun(client);
    expect(server!.errors()).toContain('are being rebuilt from the log');
  },
  TIME_LIMIT_MS,
);
