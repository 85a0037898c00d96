/** The stores on which every attack is tried, and a test service on each of them. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { checkConnectivity } from '../../../../infra/postgres/connectivityCheck.ts';
import { makeSigningKey } from '../../../../services/compose/signingKeys.ts';
import type { Script } from '../../fakes/scriptedModel.ts';
import { startTestService, type TestService } from '../../http/service.ts';
import { startEventStoreDbNode } from '../../servers/eventstoredb-node/index.ts';
import { createTestDatabase, type TestDatabase } from '../../servers/postgres/postgresDatabase.ts';
import { startPostgresServer, withoutPostgres } from '../../servers/postgres/postgresServer.ts';
import { testMasterKeyFile } from '../masterKeyFile.ts';
import { temporaryFolder } from '../sqlite/sqliteEventStore.ts';
import { eventStoreDbForger, sqliteForger, type Forger } from './forger.ts';

/** A log and read models, empty at first. */
export interface ForgedStores {
  /** The options of services and operator commands on them. */
  env: { DATA_DIR: string } & Record<string, string>;
  /** The folder of all their files: DATA_DIR and the log's own. */
  folder: string;
  /** Someone with write access to the log. */
  forger: Forger;
  /** The database with the read models, the transparency log and the keys, if they are in one. */
  database?: TestDatabase;
  /** Works on the files while the log is not served. */
  whileStopped(work: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

export interface ForgedService extends TestService, Pick<ForgedStores, 'forger'> {
  /** The options of operator commands on its stores. */
  env: Record<string, string>;
}

/** A kind of log with a kind of read models, for `describe.each`. */
export interface StoreKind {
  name: string;
  open(): Promise<ForgedStores>;
  start(script?: Script, env?: Record<string, string>): Promise<ForgedService>;
}

async function openEmbedded(): Promise<ForgedStores> {
  const folder = await temporaryFolder();
  const data = join(folder, 'data');
  return {
    env: { DATA_DIR: data },
    folder,
    forger: sqliteForger(data),
    whileStopped: (work) => work(),
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

/** The log in an EventStoreDB stand-in, which runs in this process. */
async function openCluster(): Promise<ForgedStores> {
  const { folder, env, close } = await openEmbedded();
  const log = join(folder, 'log');
  let node = await startEventStoreDbNode({ folder: log });
  const { port, connectionString } = node;
  return {
    env: { ...env, EVENTSTOREDB_URL: connectionString },
    folder,
    forger: eventStoreDbForger(log),
    async whileStopped(work) {
      await node.close();
      await work();
      node = await startEventStoreDbNode({ folder: log, port });
    },
    async close() {
      await node.close();
      await close();
    },
  };
}

/** The same, with read models, transparency log and keys in a database. */
async function openDistributed(serverUrl: string): Promise<ForgedStores> {
  const [cluster, database] = await Promise.all([openCluster(), createTestDatabase(serverUrl)]);
  await checkConnectivity(database.url);
  const env = {
    ...cluster.env,
    DATABASE_URL: database.url,
    MASTER_KEY_FILE: testMasterKeyFile(),
    LOG_SIGNING_KEY_FILE: join(cluster.folder, 'log-signing-key.pem'),
  };
  makeSigningKey(env.LOG_SIGNING_KEY_FILE);
  return {
    ...cluster,
    env,
    database,
    async close() {
      await cluster.close();
      await database.drop();
    },
  };
}

const kindOf = (name: string, open: StoreKind['open']): StoreKind => ({
  name,
  open,
  async start(script, more) {
    const stores = await open();
    const env = { ...stores.env, ...more };
    const service = await startTestService(script, env);
    const { close } = service;
    return Object.assign(service, {
      forger: stores.forger,
      env,
      async close() {
        await close();
        await stores.close();
      },
    });
  },
});

/**
 * Every kind, for the rest of the test file; those with PostgreSQL are skipped where there is no
 * server, and fail in CI.
 */
export async function forgedStores(): Promise<readonly StoreKind[]> {
  const server = await startPostgresServer();
  afterAll(() => server?.close());
  if (!server) withoutPostgres('attacks on PostgreSQL');
  return [
    kindOf('SQLite', openEmbedded),
    kindOf('EventStoreDB and SQLite', openCluster),
    ...(server ? [kindOf('EventStoreDB and PostgreSQL', () => openDistributed(server.url))] : []),
  ];
}
