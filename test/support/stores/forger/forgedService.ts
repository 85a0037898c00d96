/** A test service whose log a forger has write access to, on each kind of log. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestService, type TestService } from '../../http/service.ts';
import type { Script } from '../../fakes/scriptedModel.ts';
import { startEventStoreDbNode } from '../../servers/eventstoredb-node/index.ts';
import { eventStoreDbForger, sqliteForger, type Forger } from './forger.ts';

export interface ForgedService extends TestService {
  forger: Forger;
  /** The options that CLI commands need, in addition to `DATA_DIR`, to find the same log. */
  env: Record<string, string>;
}

type Start = (script?: Script, env?: Record<string, string>) => Promise<ForgedService>;

/** A service on the embedded log. */
const onSqlite: Start = async (script, env = {}) => {
  const service = await startTestService(script, env);
  return Object.assign(service, {
    forger: sqliteForger(service.folder),
    env: { DATA_DIR: service.folder, ...env },
  });
};

/** A service on an EventStoreDB stand-in of its own, which runs in this process. */
const onEventStoreDb: Start = async (script, env = {}) => {
  const folder = await mkdtemp(join(tmpdir(), 'turnlog-forged-'));
  const node = await startEventStoreDbNode({ folder });
  const all = { EVENTSTOREDB_URL: node.connectionString, ...env };
  const service = await startTestService(script, all);
  const { close } = service;
  return Object.assign(service, {
    forger: eventStoreDbForger(folder),
    env: { DATA_DIR: service.folder, ...all },
    async close() {
      await close();
      await node.close();
      await rm(folder, { recursive: true, force: true });
    },
  });
};

/** The stores on which every attack is tried: for `describe.each(FORGED_STORES)`. */
export const FORGED_STORES: readonly { name: string; start: Start }[] = [
  { name: 'SQLite', start: onSqlite },
  { name: 'EventStoreDB', start: onEventStoreDb },
];
