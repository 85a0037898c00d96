/** Replicas over PostgreSQL whose log was exchanged under them, or while they were down. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { EXIT } from '../../../services/cli/exitCodes.ts';
import { startNodeOnFile } from '../../support/stores/changedLogs/nodeOnFile.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { TEST_KEY, type Client } from '../../support/http/service.ts';
import { createTestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { startCliWith } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { startReplicas } from '../../support/processes/replicas.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { testMasterKeyFile } from '../../support/stores/masterKeyFile.ts';
import { testSigningKeyFile } from '../../support/builders/signingKey.ts';

const AGENT = { name: 'Echo', instruction: 'Answer.', model: 'offline-echo' };
const TIME_LIMIT_MS = 300_000;
const postgres = await startPostgresServer();

function suite(serverUrl: string): void {
  let opened: AsyncDisposableStack;
  let env: Record<string, string>;
  let node: Awaited<ReturnType<typeof startNodeOnFile>>;
  let replicas: ReturnType<typeof startReplicas>;

  const start = (): void => {
    replicas = startReplicas(env, ['api', 'api', 'projector', 'projector']);
  };
  /** What each API replica answers. */
  const eachOf = <Result>(ask: (client: Client) => Promise<Result>): Promise<Result[]> =>
    Promise.all(replicas.clients().map(ask));
  const create = async (): Promise<string> => {
    const [client] = replicas.clients();
    const { body } = await client!.post('/v1/agents', AGENT);
    return (body.data as { agent_id: string }).agent_id;
  };
  const isWritable = () =>
    eventually(
      () => eachOf(async (client) => (await client.post('/v1/agents', AGENT)).status),
      (statuses) => statuses.every((status) => status === 201 || status === 200),
    );
  /** Every replica shows what is written through any of them. */
  const expectAllGood = async (agent: string, lost: string): Promise<void> => {
    await isWritable();
    for (const client of replicas.clients()) {
      const run = await client.post(`/v1/agents/${agent}/run`, { input: 'Hello' });
      expect(run.status).toBe(200);
      const { session_id } = run.body.data as { session_id: string };
      const shown = await eachOf((other) => other.get(`/v1/sessions/${session_id}`));
      expect(shown.map(({ status }) => status)).toEqual([200, 200]);
      expect((await client.get(`/v1/agents/${lost}`)).status).toBe(404);
    }
    const health = await eachOf((client) =>
      eventually(
        () => client.get('/health/ready'),
        ({ body }) => body.data?.status === 'ready',
      ),
    );
    expect(health.map(({ status }) => status)).toEqual([200, 200]);
  };
  /** Every API writes nothing, and health says why. */
  const expectRefusal = async (agent: string): Promise<void> => {
    await eventually(
      () => eachOf(async (client) => (await client.post('/v1/agents', AGENT)).body.code),
      (codes) => codes.every((code) => code === 'log_changed'),
    );
    const runs = await eachOf((client) =>
      client.post(`/v1/agents/${agent}/run`, { input: 'Hello' }),
    );
    expect(runs.map(({ status, body }) => [status, body.code])).toEqual(
      runs.map(() => [503, 'log_changed']),
    );
    for (const reply of await eachOf((client) => client.get('/health/ready')))
      expect(expectFailure(reply, 'store_unavailable').error).toContain('log accept-restored');
  };
  /** Every API waits with its start, and says why. */
  const expectToWait = async (agent: string): Promise<void> => {
    const clients = await replicas.listening();
    await eventually(
      () => Promise.all(clients.map((client) => client.get('/health/ready'))),
      (answers) =>
        answers.every(
          ({ status, body }) => status === 503 && body.error?.includes('log accept-restored'),
        ),
    );
    const runs = await Promise.all(
      clients.map((client) => client.post(`/v1/agents/${agent}/run`, { input: 'Hello' })),
    );
    expect(runs).toHaveLength(2);
    for (const { status, body } of runs) {
      expect(status).toBe(503);
      expect(body.error).toContain('log accept-restored');
    }
  };
  /** On a machine that does much else, a rebuild may lose its lock: it goes on with the same command. */
  const operate = async (...command: string[]) => {
    let ended = await startCliWith(env, ...command).ended;
    while (ended.code === EXIT.interrupted) ended = await startCliWith(env, ...command).ended;
    expect(ended).toMatchObject({ code: EXIT.done });
  };

  beforeEach(async () => {
    opened = new AsyncDisposableStack();
    const folder = opened.adopt(await temporaryFolder(), (made) => rm(made, { recursive: true }));
    const database = opened.adopt(await createTestDatabase(serverUrl), ({ drop }) => drop());
    node = opened.adopt(await startNodeOnFile(folder), ({ close }) => close());
    await mkdir(join(folder, 'none'));
    env = {
      DATA_DIR: join(folder, 'none'),
      EVENTSTOREDB_URL: node.connectionString,
      DATABASE_URL: database.url,
      MASTER_KEY_FILE: testMasterKeyFile(),
      LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
      BOOTSTRAP_API_KEY: TEST_KEY,
    };
    start();
    opened.defer(async () => void (await replicas.stop()));
    await replicas.ready();
  }, TIME_LIMIT_MS);
  afterEach(() => opened.disposeAsync());

  test(
    'write nothing to an older copy while they run, and go on once it was declared',
    async () => {
      const known = await create();
      const older = await node.copy('older');
      const lost = await create();
      await node.exchange(older);
      await expectRefusal(known);
      await operate('log', 'accept-restored', '--reason', 'a test');
      await expectAllGood(known, lost);
    },
    TIME_LIMIT_MS,
  );

  test(
    'write nothing to an older copy that they are started on, and go on once the read models were rebuilt and the log was declared',
    async () => {
      const known = await create();
      const older = await node.copy('older');
      const lost = await create();
      await replicas.stop();
      await node.exchange(older);
      start();
      await expectToWait(known);
      await operate('projections', 'rebuild');
      await operate('log', 'accept-restored', '--reason', 'a test');
      await replicas.ready();
      await expectAllGood(known, lost);
    },
    TIME_LIMIT_MS,
  );
}

if (postgres) {
  describe('replicas over a log that was exchanged', () => suite(postgres.url));
  afterAll(postgres.close);
} else {
  withoutPostgres('replicas over a log that was exchanged');
}
