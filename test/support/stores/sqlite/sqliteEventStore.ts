import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createPrivateFile,
  eventLogFile,
  openForWriting,
} from '../../../../infra/sqlite/eventStore/database.ts';
import { openSqliteEventStore } from '../../../../infra/sqlite/eventStore/eventStore.ts';
import { announceAppend } from '../../../../infra/sqlite/eventStore/appendNotifier.ts';
import { openSqliteEventLog } from '../../../../infra/sqlite/eventStore/log.ts';
import { toPosition } from '../../../../infra/sqlite/eventStore/reader.ts';
import { createWriter } from '../../../../infra/sqlite/eventStore/writer.ts';
import { openTextKeys } from '../../../../services/compose/textKeys.ts';
import { createKeyring } from '../../../../shared/eventlog/encryption/keyring.ts';
import type { ProtectedStore } from '../../../../shared/eventlog/encryption/protectedStore.ts';
import { isTurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { memoryKeys } from '../../fakes/memoryKeys.ts';
import type { EventStoreFixture } from '../../../contracts/eventStore.ts';

export const temporaryFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'turnlog-test-'));

/** The event store of a data folder, with the keys of its texts, as a service has it there. */
export async function openProtectedStore({ folder }: { folder: string }): Promise<ProtectedStore> {
  const keys = await openTextKeys({
    kind: 'embedded',
    dataFolder: folder,
    log: { folder },
    keysFolder: folder,
    masterKeyFile: undefined,
  });
  const store = await openSqliteEventStore({ folder });
  return {
    ...store,
    keys: createKeyring({ ...keys, log: store }),
    async close() {
      await store.close();
      await keys.store.close();
    },
  };
}

export interface SqliteEventStoreFixture extends EventStoreFixture {
  folder: string;
  store: () => ProtectedStore;
}

/** A SQLite event store in a temporary folder of its own, with the keys of its texts. */
export async function sqliteEventStoreFixture(): Promise<SqliteEventStoreFixture> {
  const folder = await temporaryFolder();
  let store = await openProtectedStore({ folder });
  return {
    folder,
    store: () => store,
    async reopen() {
      await store.close();
      store = await openProtectedStore({ folder });
    },
    async dispose() {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}

/**
 * The event store for tests of modules that use one: without its thread and without waiting for the
 * disk, which both take longer than all that such a test appends.
 */
async function openQuickly(folder: string, { open }: ReturnType<typeof memoryKeys>) {
  const file = eventLogFile(folder);
  createPrivateFile(folder, file);
  const database = openForWriting(file);
  database.exec('PRAGMA synchronous = OFF');
  const log = openSqliteEventLog({ folder });
  const commit = createWriter(database);
  return {
    ...log,
    keys: open(log),
    async append(...[stream, expected, events]: Parameters<ProtectedStore['append']>) {
      const [outcome] = commit([{ stream, expected, events }]);
      if (isTurnlogError(outcome)) throw outcome;
      announceAppend();
      return { revision: outcome!.revision, position: toPosition(outcome!.position) };
    },
    async close() {
      await log.close();
      database.close();
    },
  };
}

/** A quick event store in a temporary folder, with keys in memory. */
export async function eventStoreFixture(): Promise<SqliteEventStoreFixture> {
  const folder = await temporaryFolder();
  const keys = memoryKeys();
  let store = await openQuickly(folder, keys);
  return {
    folder,
    store: () => store,
    async reopen() {
      await store.close();
      store = await openQuickly(folder, keys);
    },
    async dispose() {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}
