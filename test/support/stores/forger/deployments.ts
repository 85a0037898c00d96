/** Deployments whose whole storage can be put back to an earlier state, or lose its tree. */
import { cp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../sqlite/sqliteEventStore.ts';
import { testMasterKeyFile } from '../masterKeyFile.ts';
import { testSigningKeyFile } from '../../builders/signingKey.ts';
import { apiClient, TEST_KEY, type Client, type Reply } from '../../http/service.ts';
import { eventually } from '../../processes/operator.ts';
import { startCliWith, type CliResult } from '../../processes/cliProcess.ts';
import { startServerProcess, type ServerProcess } from '../../processes/serverProcess.ts';
import { startEventStoreDbProcess } from '../../servers/eventstoredb/eventStoreDbProcess.ts';
import { createTestDatabase, execute } from '../../servers/postgres/postgresDatabase.ts';
import { eventStoreDbForger, sqliteForger, type Forger } from './forger.ts';

/** The storage of a service: its log, its read models, and its tree. */
interface Storage {
  env: Record<string, string>;
  forger: Forger;
  /** Copies all of it under a name, while no service runs. */
  save(name: string): Promise<void>;
  /** Puts a copy back, while no service runs. */
  putBack(name: string): Promise<void>;
  /** Deletes the tree, or its checkpoint alone. */
  deleteTree(part?: 'checkpoint'): Promise<void>;
  /** The newest checkpoint; undefined if there is none. */
  checkpoint(): Promise<string | undefined>;
  close(): Promise<void>;
}

/** One service as a real process, which is started and stopped over its storage. */
export interface Deployment extends Omit<Storage, 'close'> {
  /** Starts the service, and resolves once it answers. It may wait, and not be ready. */
  start(env?: Record<string, string>): Promise<RunningDeployment>;
  cli(...args: string[]): Promise<CliResult>;
  /** The same with further options. */
  cliWith(env: Record<string, string>, ...args: string[]): Promise<CliResult>;
  close(): Promise<void>;
}

export interface RunningDeployment extends Client {
  /** The answer of `/health/ready`. */
  health(): Promise<Reply>;
  /** Resolves with the answer of health once the start waits for this, a beginning of a sentence. */
  waiting(why: string): Promise<Reply>;
  /** Resolves once it is ready. */
  ready(): Promise<void>;
  /** Creates an agent, which is an event, and resolves once a checkpoint covers it. */
  write(): Promise<void>;
  /** What it has logged. */
  logged(): string;
  stop(): Promise<void>;
}

/** How many leaves a checkpoint has; 0 for none. */
export const sizeOf = (checkpoint: string | undefined): number =>
  Number(checkpoint?.split('\n')[1] ?? 0);

const LISTENING = /"url":"(http:[^"]+)","msg":"listening/;

/** The data folder of an embedded service. */
async function openEmbedded(): Promise<Storage> {
  const folder = await temporaryFolder();
  const data = join(folder, 'data');
  const tree = async (): Promise<string> =>
    join(data, 'tlog', (await readFile(join(data, 'tlog', '.current'), 'utf8')).trim());
  return {
    env: { DATA_DIR: data },
    forger: sqliteForger(data),
    save: (name) => cp(data, join(folder, name), { recursive: true }),
    async putBack(name) {
      await rm(data, { recursive: true });
      await cp(join(folder, name), data, { recursive: true });
    },
    async deleteTree(part) {
      const path = part ? join(await tree(), part) : join(data, 'tlog');
      await rm(path, { recursive: true });
    },
    checkpoint: async () => {
      try {
        return await readFile(join(await tree(), 'checkpoint'), 'utf8');
      } catch {
        return undefined;
      }
    },
    close: () => rm(folder, { recursive: true }),
  };
}

/** An EventStoreDB stand-in, and a database with the read models and the tree. */
async function openDistributed(serverUrl: string): Promise<Storage> {
  const folder = await temporaryFolder();
  const data = join(folder, 'data');
  let node = await startEventStoreDbProcess({ folder: data });
  const { port, connectionString } = node;
  const database = await createTestDatabase(serverUrl);
  const name = new URL(database.url).pathname.slice(1);
  const copyOf = (saved: string): string => `${name}_${saved}`;
  const copies = new Set<string>();

  async function whileStopped(work: () => Promise<void>): Promise<void> {
    await node.kill();
    await work();
    node = await startEventStoreDbProcess({ folder: data, port });
  }

  return {
    env: {
      EVENTSTOREDB_URL: connectionString,
      DATABASE_URL: database.url,
      MASTER_KEY_FILE: testMasterKeyFile(),
      LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
    },
    forger: eventStoreDbForger(data),
    save: (saved) =>
      whileStopped(async () => {
        await cp(data, join(folder, saved), { recursive: true });
        await execute(serverUrl, `CREATE DATABASE ${copyOf(saved)} TEMPLATE ${name}`);
        copies.add(copyOf(saved));
      }),
    putBack: (saved) =>
      whileStopped(async () => {
        await rm(data, { recursive: true });
        await cp(join(folder, saved), data, { recursive: true });
        await database.drop();
        await execute(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${copyOf(saved)}`);
      }),
    async deleteTree(part) {
      const sql = part
        ? 'UPDATE turnlog.tlog_trees SET note = NULL'
        : 'DELETE FROM turnlog.tlog_trees';
      await execute(database.url, sql);
      if (!part) await execute(database.url, 'DELETE FROM turnlog.tlog_tiles');
    },
    async checkpoint() {
      const [row] = await execute(
        database.url,
        'SELECT note FROM turnlog.tlog_trees ORDER BY opened DESC LIMIT 1',
      );
      return (row?.['note'] as string | null | undefined) ?? undefined;
    },
    async close() {
      await node.kill();
      await database.drop();
      for (const copy of copies) await execute(serverUrl, `DROP DATABASE ${copy} WITH (FORCE)`);
      await rm(folder, { recursive: true });
    },
  };
}

/** The address that a process listens at, though its start may wait. */
async function addressOf(process: ServerProcess): Promise<string> {
  const ended = process.exited.then((code) => {
    throw new Error(`the server ended with code ${code}: ${process.errors()}`);
  });
  ended.catch(() => undefined);
  const listening = eventually(
    async () => LISTENING.exec(process.errors())?.[1],
    (url) => url !== undefined,
  );
  return (await Promise.race([listening, ended]))!;
}

async function deploymentOver(storage: Storage): Promise<Deployment> {
  const running = new Set<ServerProcess>();
  const cliWith: Deployment['cliWith'] = (env, ...args) =>
    startCliWith({ ...storage.env, ...env }, ...args).ended;
  return {
    ...storage,
    cliWith,
    cli: (...args) => cliWith({}, ...args),
    async start(env = {}) {
      const process = startServerProcess({
        ...storage.env,
        BOOTSTRAP_API_KEY: TEST_KEY,
        LOG_LEVEL: 'info',
        ...env,
      });
      running.add(process);
      const client = apiClient(await addressOf(process), TEST_KEY);
      const health = () => client.get('/health/ready');
      return {
        ...client,
        health,
        waiting: (why) =>
          eventually(health, ({ body }) => body.error?.includes(`waits. ${why}`) === true),
        ready: async () => void (await eventually(health, ({ status }) => status === 200)),
        async write() {
          const agent = { name: 'a', instruction: 'i', model: 'offline-echo' };
          const { status } = await client.post('/v1/agents', agent);
          if (status !== 200) throw new Error(`the agent was answered with ${status}`);
          const events = storage.forger.events().length;
          // The service may append an event meanwhile.
          await eventually(storage.checkpoint, (note) => sizeOf(note) >= events);
        },
        logged: process.errors,
        async stop() {
          process.kill('SIGTERM');
          await process.exited;
          running.delete(process);
        },
      };
    },
    async close() {
      for (const process of running) process.kill('SIGKILL');
      await Promise.all([...running].map(({ exited }) => exited));
      await storage.close();
    },
  };
}

/** The deployments on which every attack is tried; without PostgreSQL only the first one. */
export const deployments = (
  serverUrl: string | undefined,
): { name: string; open: () => Promise<Deployment> }[] => [
  {
    name: 'an embedded service',
    open: async () => deploymentOver(await openEmbedded()),
  },
  ...(serverUrl === undefined
    ? []
    : [
        {
          name: 'EventStoreDB and PostgreSQL',
          open: async () => deploymentOver(await openDistributed(serverUrl)),
        },
      ]),
];
