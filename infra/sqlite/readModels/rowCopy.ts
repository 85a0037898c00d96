import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type {
  RowCopy,
  VerificationState,
} from '../../../shared/readModels/integrity/verifyRows.ts';
import { isSqliteBusy } from '../eventStore/errors.ts';
import { withReadModelErrors } from './failures.ts';
import { openGenerationFile } from './generationFile.ts';
import { removeDatabase, verifyingFile } from './generations.ts';
import { readRows } from './liveRows.ts';
import { projectionStoreOn } from './projectionStore.ts';
import { VERSION } from './schema.ts';

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
