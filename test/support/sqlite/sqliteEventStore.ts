import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore.ts';
import type { EventStoreFixture } from '../../contracts/eventStore.ts';

export const temporaryFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'turnlog-test-'));

/** A SQLite event store in a temporary folder of its own. */
export async function sqliteEventStoreFixture(): Promise<EventStoreFixture & { folder: string }> {
  const folder = await temporaryFolder();
  let store = await openSqliteEventStore({ folder });
  return {
    folder,
    store: () => store,
    async reopen() {
      await store.close();
      store = await openSqliteEventStore({ folder });
    },
    async dispose() {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}
