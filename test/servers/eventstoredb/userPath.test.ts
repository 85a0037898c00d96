/**
 * What an operator meets on EventStoreDB, in order: each message names the cause and the next step.
 * The log is on a node with TLS and a password, which is addressed by its IP.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { apiClient, TEST_KEY, type Client, type Reply } from '../../support/http/service.ts';
import { startCliWith } from '../../support/processes/cliProcess.ts';
import { freePort } from '../../support/processes/freePort.ts';
import { eventually } from '../../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { changeAdminPassword } from '../../support/servers/eventstoredb/nodeUsers.ts';
import { changeableLog, KINDS_OF_LOGS } from '../../support/stores/changedLogs/logs.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const TIME_LIMIT_MS = 120_000;
const AGENT = { name: 'Echo', instruction: 'Answer.', model: 'offline-echo' };

let folder: string;
let node: EventStoreDbProcess;
let server: ServerProcess | undefined;
let client: Client;
let agent: string;

beforeAll(async () => {
  folder = await temporaryFolder();
  await mkdir(join(folder, 'node'));
  node = await startEventStoreDbProcess({ folder: join(folder, 'node'), secured: true });
});
afterAll(async () => {
  await stop();
  await node.kill();
  await rm(folder, { recursive: true });
});

async function stop(): Promise<void> {
  server?.kill('SIGTERM');
  await server?.exited;
  server = undefined;
}

const base = (dataFolder: string): Record<string, string> => ({
  DATA_DIR: join(folder, dataFolder),
  EVENTSTOREDB_URL: node.connectionString,
  BOOTSTRAP_API_KEY: TEST_KEY,
});

/** Starts a service that may not come up. */
async function launch(dataFolder: string, env: Record<string, string> = {}): Promise<void> {
  await stop();
  const PORT = String(await freePort());
  server = startServerProcess({ ...base(dataFolder), PORT, ...env });
  client = apiClient(`http://127.0.0.1:${PORT}`, TEST_KEY);
}

async function start(dataFolder: string, env: Record<string, string> = {}): Promise<void> {
  await launch(dataFolder, env);
  await server!.ready;
}

const run = () => client.post(`/v1/agents/${agent}/run`, { input: 'Hello' });
const listed = async (): Promise<string[]> =>
  ((await client.get('/v1/agents')).body.data as { agent_id: string }[]).map(
    ({ agent_id }) => agent_id,
  );

/** Health; undefined while the process does not listen yet. */
async function health(): Promise<Reply | undefined> {
  try {
    return await client.get('/health/ready');
  } catch {
    return undefined;
  }
}

/** Waits until health is 503 with the error. */
async function isUnready(error: RegExp): Promise<void> {
  const reply = await eventually(health, (answer) => error.test(answer?.body.error ?? ''));
  expect([reply?.status, reply?.body.code]).toEqual([503, 'store_unavailable']);
}

async function isReady(): Promise<void> {
  await eventually(
    () => client.get('/health/ready'),
    ({ status }) => status === 200,
  );
  const { status, body } = await run();
  expect(status).toBe(200);
  // Followers have seen it as well.
  expect((await client.get(`/v1/sessions/${body.data.session_id}`)).status).toBe(200);
}

const lines = (text: RegExp): Record<string, unknown>[] =>
  server!
    .errors()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { msg: string })
    .filter(({ msg }) => text.test(msg));

const KEYS_CREATED =
  /keys of its texts were created in this folder: keys\.db and master\.key.* Back up both.* set KEYS_DIR/;

describe('a service on EventStoreDB', () => {
  test(
    'says at its first start where the keys are and how to keep them, and creates, runs and lists',
    async () => {
      await start('data');
      expect(lines(KEYS_CREATED)).toMatchObject([{ keys_folder: join(folder, 'data') }]);
      agent = (await client.post('/v1/agents', AGENT)).body.data.agent_id as string;
      expect((await run()).status).toBe(200);
      expect(await listed()).toEqual([agent]);
      expect(server!.errors()).not.toMatch(/DEP0123|Deprecation/);
    },
    TIME_LIMIT_MS,
  );

  test(
    'goes on after a restart with the same data folder',
    async () => {
      await start('data');
      expect(lines(KEYS_CREATED)).toEqual([]);
      expect(await listed()).toEqual([agent]);
      expect((await run()).status).toBe(200);
    },
    TIME_LIMIT_MS,
  );

  test(
    'does not start with a new data folder, and says first that the old one is needed; with its keys it starts',
    async () => {
      await launch('new');
      await isUnready(
        /The transparency log \S+ is missing: .*\. Start with the DATA_DIR.*another LOG_ORIGIN.*from a backup.*audit declare-tree/,
      );
      const parked = await eventually(
        async () => lines(/was parked/),
        (found) => found.length > 0,
      );
      expect(parked[0]!['error']).toEqual(
        expect.stringMatching(
          /^The key \S+ of texts in the log was lost: .*\. Start with the DATA_DIR, KEYS_DIR or DATABASE_URL of the server that wrote the texts\..* from a backup\. .* npm run cli -- projections rebuild/,
        ),
      );
      const env = { KEYS_DIR: join(folder, 'data'), LOG_ORIGIN: 'another' };
      await start('new', env);
      const rebuild = startCliWith({ ...base('new'), ...env }, 'projections', 'rebuild');
      const { code, err } = await rebuild.ended;
      expect([code, err]).toEqual([0, expect.any(String)]);
      const reply = await eventually(
        () => client.get('/v1/agents'),
        ({ status }) => status === 200,
      );
      expect(reply.body.data).toMatchObject([{ agent_id: agent, name: AGENT.name }]);
    },
    TIME_LIMIT_MS,
  );

  test(
    'with a wrong password, or without TLS, waits and names the option',
    async () => {
      await launch('data', {
        EVENTSTOREDB_URL: node.connectionString.replace('changeit', 'a-guess'),
      });
      await isUnready(/refuses the user or the password of EVENTSTOREDB_URL: correct the URL/);
      expect(server!.errors()).not.toContain('a-guess');
      await launch('data', { EVENTSTOREDB_URL: `esdb://127.0.0.1:${node.port}?tls=false` });
      await isUnready(/It seems to expect TLS: remove tls=false from EVENTSTOREDB_URL\.$/);
    },
    TIME_LIMIT_MS,
  );

  test(
    'whose server is away is 503 with the cause, and serves again by itself',
    async () => {
      await start('data');
      await node.kill();
      await isUnready(/refuses connections: start the node, or correct the host and the port/);
      expect(await run()).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
      const { port } = node;
      node = await startEventStoreDbProcess({ folder: join(folder, 'node'), port, secured: true });
      await isReady();
    },
    TIME_LIMIT_MS,
  );

  test(
    'whose password was changed on the server fails runs as well as health, until it is changed back',
    async () => {
      const changed = { from: 'changeit', to: 'another one' };
      expect((await run()).status).toBe(200);
      expect(await changeAdminPassword(node.port, changed)).toBe(200);
      await isUnready(/refuses the user or the password of EVENTSTOREDB_URL/);
      expect(await run()).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
      const back = { from: changed.to, to: changed.from };
      expect(await changeAdminPassword(node.port, back)).toBe(200);
      await isReady();
    },
    TIME_LIMIT_MS,
  );

  test(
    'whose server was restored from an older backup is not ready, and names the command that goes on',
    async () => {
      const place = join(folder, 'node');
      const { port } = node;
      const restart = async (work: () => Promise<void>): Promise<void> => {
        await node.kill();
        await work();
        node = await startEventStoreDbProcess({ folder: place, port, secured: true });
      };
      const log = changeableLog(
        KINDS_OF_LOGS.find(({ name }) => name === 'EventStoreDB')!,
        place,
      );
      let restore: () => Promise<void> = () => Promise.resolve();
      await restart(async () => void (restore = await log.copy('backup')));
      await isReady();
      await restart(restore);
      await isUnready(/The log has changed: .* log accept-restored/);
      expect(await run()).toMatchObject({ status: 503, body: { code: 'log_changed' } });
    },
    TIME_LIMIT_MS,
  );
});
