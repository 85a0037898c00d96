import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteEventStore } from '../../../../infra/sqlite/eventStore/eventStore.ts';
import { openTextKeys } from '../../../../services/compose/textKeys.ts';
import { createKeyring } from '../../../../shared/eventlog/encryption/keyring.ts';
import type { ProtectedStore } from '../../../../shared/eventlog/encryption/protectedStore.ts';
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
