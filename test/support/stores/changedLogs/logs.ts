/** Logs that are cut, copied and exchanged while nobody has them open. */
import { copyFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openEventStoreDb } from '../../../../infra/eventstoredb/eventStore.ts';
import { openSqliteEventStore } from '../../../../infra/sqlite/eventStore/eventStore.ts';
import type { EventStore, StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { startEventStoreDbNode } from '../../servers/eventstoredb-node/index.ts';

/** Opens a store on the log's folder; what it returns closes it. */
type Open = (folder: string) => Promise<{ store: EventStore; close: () => Promise<void> }>;

export interface KindOfLog {
  name: string;
  file: string;
  open: Open;
  /** Deletes what lies beyond an event. */
  cut: (database: DatabaseSync, last: StoredEvent) => void;
}

export const KINDS_OF_LOGS: readonly KindOfLog[] = [
  {
    name: 'SQLite',
    file: 'events.db',
    async open(folder) {
      const store = await openSqliteEventStore({ folder });
      return { store, close: store.close };
    },
    cut: (database, { position }) =>
      void database.prepare('DELETE FROM events WHERE position > ?').run(Number(position)),
  },
  {
    name: 'EventStoreDB',
    file: 'log.db',
    async open(folder) {
      const node = await startEventStoreDbNode({ folder });
      const store = await openEventStoreDb({ connectionString: node.connectionString });
      return {
        store,
        async close() {
          await store.close();
          await node.close();
        },
      };
    },
    cut: (database, { position }) =>
      void database
        .prepare('DELETE FROM records WHERE position > ?')
        .run(BigInt(position.split('/')[0]!)),
  },
];

export type ChangeableLog = ReturnType<typeof changeableLog>;

/** A log of that kind in a folder. */
export function changeableLog({ file, open, cut }: KindOfLog, folder: string) {
  const path = join(folder, file);
  const remove = () =>
    Promise.all(['', '-wal', '-shm'].map((end) => rm(`${path}${end}`, { force: true })));
  return {
    /** Has it open meanwhile. */
    async use<Result>(work: (store: EventStore) => Promise<Result>): Promise<Result> {
      const { store, close } = await open(folder);
      try {
        return await work(store);
      } finally {
        await close();
      }
    },
    /** Keeps the events up to this one; nothing at all without one. */
    async cutAfter(last: StoredEvent | undefined): Promise<void> {
      if (!last) return void (await remove());
      const database = new DatabaseSync(path);
      cut(database, last);
      database.close();
    },
    /** Copies it as it is now. Resolves with what puts that copy back. */
    async copy(name: string): Promise<() => Promise<void>> {
      const kept = join(folder, `${name}.copy`);
      const database = new DatabaseSync(path);
      database.exec(`VACUUM INTO '${kept}'`);
      database.close();
      return async () => {
        await remove();
        await copyFile(kept, path);
      };
    },
  };
}
