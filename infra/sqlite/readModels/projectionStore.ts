import { DatabaseSync } from 'node:sqlite';
import { isTurnlogError } from '../../../shared/errors.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type {
  ParkedStream,
  ProjectionStore,
  RebuildStore,
} from '../../../shared/ports/readModels.ts';
import { requirePosition } from '../../../shared/eventlog/positions.ts';
import { planBatch } from '../../../shared/projections/plan.ts';
import { createPrivateFile } from '../eventStoreDatabase.ts';
import { isDamaged, isRowFailure, readModelsUnavailable } from './failures.ts';
import {
  currentGeneration,
  generationFile,
  readModelsFolder,
  removeDatabase,
} from './generations.ts';
import { createRowStore } from './rowStore.ts';
import { SCHEMA } from './schema.ts';
import { tableNames } from './tables.ts';

/**
 * A file that may be lost needs no fsync per commit: synchronous=NORMAL keeps a WAL database consistent through a crash of
 * process or machine, and the checkpoint, which is in the same transaction as the rows, says what is to be applied again.
 */
const PRAGMAS =
  'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 8000; PRAGMA cache_size = -8000; PRAGMA temp_store = MEMORY;';

/** How long a batch waits for another projector's, in milliseconds; what takes longer is tried again after a pause. */
const BUSY_TIMEOUT_MS = 1000;

function prepareDatabase(file: string, exclusive: boolean): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: exclusive ? 0 : BUSY_TIMEOUT_MS });
  try {
    // Set before the first access, so that the lock is held from the beginning to the end and dies with the process.
    if (exclusive) database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec(PRAGMAS);
    database.exec(`BEGIN IMMEDIATE; ${SCHEMA} COMMIT`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Opens or creates one file for writing. A damaged one is deleted: the log has everything that was in it. */
function openDatabase(folder: string, file: string, exclusive: boolean): DatabaseSync {
  createPrivateFile(readModelsFolder(folder), file);
  try {
    return prepareDatabase(file, exclusive);
  } catch (error) {
    if (!isDamaged(error)) throw error;
    removeDatabase(file);
    createPrivateFile(readModelsFolder(folder), file);
    return prepareDatabase(file, exclusive);
  }
}

/** Errors: `store_unavailable`, whatever SQLite threw; TurnlogErrors as they are. */
async function guarded<Result>(work: () => Result): Promise<Result> {
  try {
    return work();
  } catch (error) {
    throw isTurnlogError(error) ? error : readModelsUnavailable(error);
  }
}

const EMPTY = ['checkpoint', 'parked_streams', ...tableNames]
  .map((table) => `DELETE FROM ${table}`)
  .join('; ');

/** The store over one open file. `close` leaves no -wal behind when nobody else has the file open. */
export function projectionStoreAt(
  folder: string,
  file: string,
  exclusive: boolean,
): ProjectionStore & Pick<RebuildStore, 'startOver'> {
  const database = openDatabase(folder, file, exclusive);
  const rows = createRowStore(database);
  const selectCheckpoint = database.prepare('SELECT position FROM checkpoint');
  // A second projector (an operator command beside a server) may be ahead; a checkpoint never moves back.
  const moveCheckpoint = database.prepare(
    `INSERT INTO checkpoint (only_row, position) VALUES (1, ?)
     ON CONFLICT DO UPDATE SET position = max(position, excluded.position)`,
  );

  function transaction<Result>(work: () => Result): Result {
    database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      database.exec('COMMIT');
      return result;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  }

  const applyWith = (checkpoint: Position, work: () => ParkedStream[]): ParkedStream[] =>
    transaction(() => {
      const parked = work();
      moveCheckpoint.run(checkpoint);
      return parked;
    });

  return {
    checkpoint: () => guarded(() => selectCheckpoint.get()?.['position'] as Position | undefined),
    apply: (events, checkpoint) =>
      guarded(() => {
        // The maximum of the checkpoints is kept: one that lies beyond every log would never go away again.
        requirePosition(checkpoint);
        const plan = planBatch(events);
        try {
          return applyWith(checkpoint, () => rows.applyTogether(plan));
        } catch (error) {
          if (!isRowFailure(error)) throw error;
          return applyWith(checkpoint, () => rows.applyOneByOne(plan));
        }
      }),
    startOver: () => guarded(() => transaction(() => database.exec(EMPTY))),
    async close() {
      if (database.isOpen) database.close();
    },
  };
}

export interface GenerationStore extends ProjectionStore {
  generation: number;
}

/**
 * Opens the current generation of the read models for writing; creates one, numbered `atLeast` or higher, when there is
 * none that high. Errors: what the file system or SQLite throws when the file can't be opened.
 */
export async function openSqliteProjectionStore({
  folder,
  atLeast = 1,
}: {
  folder: string;
  atLeast?: number;
}): Promise<GenerationStore> {
  const generation = Math.max(currentGeneration(folder) ?? 0, atLeast);
  const { startOver: _ofRebuilds, ...store } = projectionStoreAt(
    folder,
    generationFile(folder, generation),
    false,
  );
  return { generation, ...store };
}
