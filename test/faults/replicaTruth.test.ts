/** What replicas tell and do when a projector stands still, is gone, or a clock goes wrong. */
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../support/eventstoredb/eventStoreDbProcess.ts';
import { startScriptedModel, type ScriptedModel } from '../support/http/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile, type Client } from '../support/http/service.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/postgresDatabase.ts';
import { startPostgresServer, withoutPostgres } from '../support/postgres/postgresServer.ts';
import { silenceableNetwork } from '../support/postgres/silenceableNetwork.ts';
import { eventually } from '../support/processes/operator.ts';
import {
  startServerProcess,
  withClockAhead,
  type ServerProcess,
} from '../support/processes/serverProcess.ts';
import { temporaryFolder } from '../support/sqlite/sqliteEventStore.ts';

/** What is promised is 10 s; a machine that is busy with something else may take longer. */
const SOON_MS = 25_000;
const GIVES_UP = 'gives up its place';
const HOUR_MS = 3_600_000;
const postgres = await startPostgresServer();

function suite(serverUrl: string): void {
  let folder: string;
  let model: ScriptedModel;
  let database: TestDatabase;
  let eventStore: EventStoreDbProcess;
  let running: ServerProcess[];

  beforeAll(async () => {
    model = await startScriptedModel((request) => ({
      text: 'Done.',
      delay_ms: request.messages.at(-1)!.content === 'slow' ? 8_000 : 0,
    }));
  });
  afterAll(() => model.close());
  beforeEach(async () => {
    folder = await temporaryFolder();
    database = await createTestDatabase(serverUrl);
    eventStore = await startEventStoreDbProcess({ folder });
    running = [];
  });
  afterEach(async () => {
    for (const process of running) process.kill('SIGKILL');
    await Promise.all(running.map(({ exited }) => exited));
    await eventStore.kill();
    await database.drop();
    await rm(folder, { recursive: true });
  });

  async function start(service: string, env: Record<string, string> = {}): Promise<ServerProcess> {
    const process = startServerProcess(
      {
        EVENTSTOREDB_URL: eventStore.connectionString,
        DATABASE_URL: database.url,
        MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
        BOOTSTRAP_API_KEY: TEST_KEY,
        VISIBILITY_WAIT_MS: '1000',
        RUN_TIMEOUT_MS: '60000',
        ...env,
      },
      ['--services', service],
    );
    running.push(process);
    return process;
  }
  const clientOf = async ({ ready }: ServerProcess): Promise<Client> =>
    apiClient(await ready, TEST_KEY);
  const write = (client: Client) =>
    client.post('/v1/agents', { name: 'Test', instruction: 'Be brief.', model: 'scripted' });
  const health = async (client: Client) => (await client.get('/health/ready')).body.data;
  const givingUp = ({ errors }: ServerProcess): number => errors().split(GIVES_UP).length - 1;

  /** An api, an active projector with an event store of its own name, and one that stands by. */
  async function replicas(eventStoreUrl = eventStore.connectionString) {
    const active = await start('projector', { EVENTSTOREDB_URL: eventStoreUrl });
    const api = await clientOf(await start('api'));
    await eventually(
      async () => health(await clientOf(active)),
      (data) => data?.projector.state === 'active',
    );
    const standby = await start('projector');
    await standby.ready;
    return { api, active, standby };
  }

  test('writes are shown again soon after the active projector has lost the event store, and only that', async () => {
    const network = await silenceableNetwork(eventStore.connectionString);
    const { api, active, standby } = await replicas(network.url);
    expect((await write(api)).headers.get('x-turnlog-visible')).toBeNull();
    const began = performance.now();
    network.cut();
    const late: boolean[] = [];
    const { body } = await eventually(
      () => write(api),
      ({ headers, status }) => {
        expect(status).toBe(200);
        late.push(headers.get('x-turnlog-visible') === 'false');
        return performance.now() - began > 1_000 && late.at(-1) === false;
      },
    );
    expect(performance.now() - began).toBeLessThan(SOON_MS);
    expect(late[0]).toBe(true);
    expect((await api.get(`/v1/agents/${body.data.agent_id}`)).status).toBe(200);
    expect((await health(await clientOf(standby))).projector.state).toBe('active');
    expect([givingUp(active), givingUp(standby)]).toEqual([1, 0]);
    running.splice(running.indexOf(active), 1);
    active.kill('SIGKILL');
    await active.exited;
    await network.close();
  }, 120_000);

  test('projectors that all have lost the event store don’t take the place from each other, and go on when it is back', async () => {
    const { api, active, standby } = await replicas();
    eventStore.signal('SIGSTOP');
    await sleep(30_000);
    expect(givingUp(active)).toBe(1);
    expect(givingUp(standby)).toBeLessThanOrEqual(1);
    eventStore.signal('SIGCONT');
    await eventually(
      () => write(api),
      ({ status, headers }) => status === 200 && !headers.has('x-turnlog-visible'),
    );
    await eventually(
      () => health(api),
      (data) => data?.projection.caught_up === true,
    );
  }, 120_000);

  test('an api tells that no projector is there, within a second or so of the time allowed, at once, and that one is again', async () => {
    const { api, active, standby } = await replicas();
    await eventually(
      () => health(api),
      (data) => data?.projection.caught_up === true,
    );
    for (const projector of [active, standby]) projector.kill('SIGSTOP');
    const began = performance.now();
    const told = await eventually(
      () => health(api),
      (data) => data?.status === 'degraded',
    );
    expect(performance.now() - began).toBeLessThan(SOON_MS);
    expect(told.projection).toMatchObject({
      caught_up: false,
      lag_events: null,
      reason: expect.stringContaining('No projector keeps the read models up to date'),
    });
    expect(told.projection.lag_ms).toBeGreaterThan(5_000);
    expect((await write(api)).headers.get('x-turnlog-visible')).toBe('false');
    const asked = performance.now();
    await Promise.all(Array.from({ length: 20 }, () => health(api)));
    expect(performance.now() - asked).toBeLessThan(2_000);
    standby.kill('SIGCONT');
    await eventually(
      () => health(api),
      (data) => data?.status === 'ready',
    );
  }, 120_000);

  test.each([
    ['ahead', HOUR_MS],
    ['behind', -HOUR_MS],
  ])(
    'an api whose clock is an hour %s interrupts nobody’s runs, and is not interrupted',
    async (_name, ms) => {
      const wrong = await clientOf(await start('api,projector', withClockAhead(ms)));
      const right = await clientOf(await start('api'));
      const agent = (await write(right)).body.data.agent_id as string;
      const runs = await Promise.all(
        [wrong, right, wrong, right].map((client) =>
          client.post(`/v1/agents/${agent}/run`, { input: 'slow' }),
        ),
      );
      expect(runs.map(({ status, body }) => [status, body.code])).toEqual(
        runs.map(() => [200, undefined]),
      );
    },
    120_000,
  );
}

if (postgres) {
  describe('replicas', () => suite(postgres.url));
  afterAll(postgres.close);
} else {
  withoutPostgres('replicas');
}
