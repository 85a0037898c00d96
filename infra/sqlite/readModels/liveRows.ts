import { DatabaseSync } from 'node:sqlite';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import {
  selectRows,
  VERIFIED_TABLES,
  type AnyRow,
  type KeyValues,
  type LiveRows,
  type VerifiedTable,
} from '../../../shared/readModels/integrity/rowReader.ts';
import { withReadModelErrors } from './failures.ts';
import { currentGeneration, generationFile } from './generations.ts';
import { rowDecoder } from './statements.ts';

const BUSY_TIMEOUT_MS = 1_000;

/** The last event that the rows of a file include. */
export const SELECT_CHECKPOINT =
  'SELECT log_id, event_position AS position, event_id, event_hash FROM checkpoint WHERE event_position IS NOT NULL';

/** Reads rows of an open file in the order of their keys. Throws SQLite's errors. */
export function readRows(
  database: DatabaseSync,
  table: VerifiedTable,
  after: KeyValues | undefined,
  limit: number,
): AnyRow[] {
  const description = VERIFIED_TABLES[table];
  const sql = selectRows(table, description, { after, limit }, () => '?');
  return database
    .prepare(sql)
    .all(...(after ?? []))
    .map(rowDecoder(description)) as AnyRow[];
}

/** The rows of the current generation in `<folder>/read-models`, whichever it is at each read. */
export function openSqliteLiveRows({ folder }: { folder: string }): LiveRows {
  let opened: { generation: number; database: DatabaseSync } | undefined;

  const closeFile = (): void => {
    opened?.database.close();
    opened = undefined;
  };

  function current(): DatabaseSync {
    const generation = currentGeneration(folder);
    if (generation === undefined)
      throw storeUnavailableError('There are no read models in the data folder yet.');
    if (opened?.generation === generation) return opened.database;
    closeFile();
    const options = { readOnly: true, timeout: BUSY_TIMEOUT_MS };
    const database = new DatabaseSync(generationFile(folder, generation), options);
    opened = { generation, database };
    return database;
  }

  return {
    read: (table, after, limit) =>
      withReadModelErrors(() => {
        const database = current();
        database.exec('BEGIN');
        try {
          const checkpoint = database.prepare(SELECT_CHECKPOINT).get() as Checkpoint | undefined;
          return { checkpoint, rows: readRows(database, table, after, limit) };
        } finally {
          database.exec('COMMIT');
        }
      }),
    close: async () => closeFile(),
  };
}
