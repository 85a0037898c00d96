import { DatabaseSync } from 'node:sqlite';
import { storeUnavailableError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import {
  selectRows,
  VERIFIED_TABLES,
  type AnyRow,
  type KeyValues,
  type LiveRows,
  type VerifiedTable,
} from '../../../shared/readModels/integrity/rowReader.ts';
import type {
  RowCopy,
  VerificationState,
} from '../../../shared/readModels/integrity/verifyRows.ts';
import { isSqliteBusy } from '../eventStore/errors.ts';
import { withReadModelErrors } from './failures.ts';
import { openGenerationFile } from './generationFile.ts';
import { currentGeneration, generationFile, removeDatabase, verifyingFile } from './generations.ts';
import { projectionStoreOn } from './projectionStore.ts';
import { VERSION } from './schema.ts';
import { rowDecoder } from './statements.ts';

const BUSY_TIMEOUT_MS = 1_000;

/** The last event that the rows of a file include. */
/** The checkpoint of a generation. */
export const SELECT_CHECKPOINT =
  'SELECT log_id, event_position AS position, event_id, event_hash FROM checkpoint WHERE event_position IS NOT NULL';

/** Reads rows of an open file in the order of their keys. Throws SQLite's errors. */
function readRows(
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

const STATE =
  'CREATE TABLE IF NOT EXISTS verification (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), state TEXT NOT NULL) STRICT';

/**
 * Opens the copy of the read models that a verification fills: a new one, or the one of an interrupted
 * verification. Throws `rebuild_running` while another verification runs.
 */
export async function openSqliteRowCopy({ folder }: { folder: string }): Promise<RowCopy> {
  const file = verifyingFile(folder);
  const options = { folder, file, exclusive: true, version: VERSION };
  try {
    const database = openGenerationFile(options);
    const store = projectionStoreOn(database, options);
    database.exec(STATE);
    const select = database.prepare('SELECT state FROM verification');
    const save = database.prepare('INSERT OR REPLACE INTO verification VALUES (1, ?)');
    return {
      checkpoint: store.checkpoint,
      apply: store.apply,
      read: (table, after, limit) =>
        withReadModelErrors(() => readRows(database, table, after, limit)),
      async state() {
        const row = select.get();
        return row && (JSON.parse(row['state'] as string) as VerificationState);
      },
      saveState: (state) => withReadModelErrors(() => void save.run(JSON.stringify(state))),
      async startOver() {
        database.exec('DELETE FROM verification');
        await store.startOver();
      },
      close: store.close,
      async discard() {
        await store.close();
        removeDatabase(file);
      },
    };
  } catch (error) {
    if (isSqliteBusy(error))
      throw new TurnlogError(
        'rebuild_running',
        `Another verification of the read models in ${folder} is running.`,
        { cause: error },
      );
    throw error;
  }
}
