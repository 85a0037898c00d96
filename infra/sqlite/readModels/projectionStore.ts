import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import type { ProjectionStore, Reached, RebuildStore } from '../../../shared/ports/readModels.ts';
import { applyBatch, type RowAccess } from '../../../shared/projections/applyBatch.ts';
import type { Version } from '../../../shared/readModels/version.ts';
import { guarded, isRowFailure } from './failures.ts';
import { createForgetting } from './forgetting.ts';
import { openGenerationFile, type GenerationFile } from './generationFile.ts';
import { currentGeneration, generationFile } from './generations.ts';
import { createRowAccess } from './rowAccess.ts';
import { VERSION } from './schema.ts';
import { createWordIndex } from './wordIndex.ts';

/**
 * The store over one open file. `close` leaves no -wal behind when nobody else has the file open.
 */
export function projectionStoreAt(
  options: GenerationFile,
): ProjectionStore & Pick<RebuildStore, 'startOver'> {
  const database = openGenerationFile(options);
  const { tables } = options.version;
  const forgetting = options.exclusive ? undefined : createForgetting({ database, ...options });
  const words = createWordIndex(database);
  let erases = false;
  let erasesWords = false;
  const access = createRowAccess(database, tables);
  const rows: RowAccess = {
    ...access,
    remove(removals) {
      if (!erasesWords && removals.some(({ table }) => table === 'turn_words')) {
        erasesWords = true;
        words.mergeAtCommit(false);
      }
      return access.remove(removals);
    },
    unpark(streams) {
      erases = true;
      return access.unpark(streams);
    },
  };
  const selectCheckpoint = database.prepare(
    'SELECT log_id, event_position AS position, event_id, event_hash FROM checkpoint WHERE event_position IS NOT NULL',
  );
  // A second projector (an operator command beside a server) may be ahead; a checkpoint never moves
  // back.
  const setCheckpoint = database.prepare(
    `INSERT INTO checkpoint (only_row, position, log_id, event_position, event_id, event_hash) VALUES (1, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET position = excluded.position, log_id = excluded.log_id,
       event_position = excluded.event_position, event_id = excluded.event_id, event_hash = excluded.event_hash
     WHERE coalesce(excluded.event_position, '') >= coalesce(event_position, '')`,
  );
  function moveCheckpoint({ position, checkpoint: to }: Reached): void {
    const { log_id = null, position: at = null, event_id = null, event_hash = null } = to ?? {};
    setCheckpoint.run(position, log_id, at, event_id, event_hash);
  }

  const empty = ['checkpoint', 'parked_streams', 'indexed', ...Object.keys(tables)]
    .map((table) => `DELETE FROM ${table}`)
    .join('; ');

  let last: Promise<unknown> = Promise.resolve();

  /**
   * Piece after piece: the file has one connection here, and the steps of two transactions would
   * mix on it.
   */
  function inTurn<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    const done = last.then(() => guarded(work));
    last = done.catch(() => undefined);
    return done;
  }

  /**
   * Waits for nothing but the work's own steps, which never leave the thread to anybody else's
   * timers or I/O.
   */
  async function transaction<Result>(work: (rows: RowAccess) => Promise<Result>): Promise<Result> {
    erases = false;
    database.exec('BEGIN IMMEDIATE');
    try {
      const result = await work(rows);
      database.exec('COMMIT');
      if (erases) forgetting?.erased();
      return result;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    } finally {
      if (erasesWords) words.mergeAtCommit(true);
      erasesWords = false;
    }
  }

  return {
    checkpoint: () => inTurn(() => selectCheckpoint.get() as Checkpoint | undefined),
    apply: (events, reached) =>
      inTurn(() => applyBatch(events, reached, { transaction, moveCheckpoint, isRowFailure })),
    unindexed: () => inTurn(words.unindexed),
    index: (turns) => inTurn(() => transaction(async () => words.index(turns))),
    forget: (begin) =>
      inTurn(async () => {
        const forgotten = await transaction(async () => words.forget(begin));
        if (forgotten === 'all') forgetting?.erased();
        return forgotten;
      }),
    startOver: () => inTurn(() => transaction(async () => database.exec(empty))),
    async close() {
      await last;
      forgetting?.close();
      if (database.isOpen) database.close();
    },
  };
}

interface GenerationStore extends ProjectionStore {
  generation: number;
}

interface Options {
  folder: string;
  /** The lowest generation that will do. */
  atLeast?: number;
  version?: Version;
}

/**
 * Opens the current generation of the read models for writing; creates one, numbered `atLeast` or
 * higher, when there is none that high. Errors: what the file system or SQLite throws when the file
 * can't be opened.
 */
export async function openSqliteProjectionStore({
  folder,
  atLeast = 1,
  version = VERSION,
}: Options): Promise<GenerationStore> {
  const generation = Math.max(currentGeneration(folder, version) ?? 0, atLeast);
  const { startOver: _ofRebuilds, ...store } = projectionStoreAt({
    folder,
    file: generationFile(folder, generation, version),
    exclusive: false,
    version,
  });
  return { generation, ...store };
}
