import { createSerialQueue } from '../../../shared/lib/concurrency/serialQueue.ts';
import type { DatabaseSync } from 'node:sqlite';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import type {
  ParkedStream,
  ProjectionStore,
  AppliedUpTo,
  RebuildStore,
} from '../../../shared/ports/readModels.ts';
import { applyBatch, type RowAccess } from '../../../shared/projections/applyBatch.ts';
import type { Version } from '../../../shared/readModels/version.ts';
import { checkpointAfterCommits } from '../walCheckpoint.ts';
import { withReadModelErrors, isRowFailure } from './failures.ts';
import { createPendingRemovals } from './erasure/pendingRemovals.ts';
import { createWalCleanup } from './erasure/secureDelete.ts';
import { openGenerationFile, type GenerationFile } from './generationFile.ts';
import { currentGeneration, generationFile } from './generations.ts';
import { createRowAccess } from './rowAccess.ts';
import { VERSION } from './schema.ts';
import { createWordIndex } from './wordIndex.ts';

/**
 * A commit is cheap here. Larger batches outlive collections of the young generation: with 1,000 events,
 * that took a tenth of the CPU time of a fill.
 */
const BATCH_SIZE = 250;

/** The write-ahead log of a live store that is checkpointed, in pages. */
const CHECKPOINT_PAGES = 2_000;

type FileStore = ProjectionStore & Pick<RebuildStore, 'startOver'>;

/**
 * The store over one file. `close` leaves no -wal behind unless another connection is open.
 */
export const projectionStoreAt = (options: GenerationFile): FileStore =>
  projectionStoreOn(openGenerationFile(options), options);

/** The store over an open file, which it closes. */
export function projectionStoreOn(database: DatabaseSync, options: GenerationFile): FileStore {
  const { tables } = options.version;
  const walCleanup = options.exclusive ? undefined : createWalCleanup({ database, ...options });
  const checkpoint = options.exclusive
    ? undefined
    : checkpointAfterCommits(database, CHECKPOINT_PAGES);
  let checkpointing: NodeJS.Immediate | undefined;
  const words = createWordIndex(database);
  let erases = false;
  let erasesWords = false;
  const access = createRowAccess(database, tables);
  const pending = createPendingRemovals({
    database,
    tables,
    removeAll: access.remove,
    mayRemove(table) {
      if (table !== 'turn_words') return true;
      if (!words.canDelete()) return false;
      if (!erasesWords) words.mergeAtCommit(false);
      erasesWords = true;
      return true;
    },
  });

  const rows: RowAccess = {
    ...access,
    load: (places) => access.load(pending.shownAmong(places)),
    save(given) {
      erases = pending.completeFor(given) || erases;
      return access.save(given);
    },
    remove: options.exclusive ? access.remove : pending.remove,
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
  function moveCheckpoint({ position, checkpoint: to }: AppliedUpTo): void {
    const { log_id = null, position: at = null, event_id = null, event_hash = null } = to ?? {};
    setCheckpoint.run(position, log_id, at, event_id, event_hash);
  }

  const empty = [
    'checkpoint',
    'pending_removals',
    'parked_streams',
    'indexed',
    ...Object.keys(tables),
    'deleted_words',
  ]
    .map((table) => `DELETE FROM ${table}`)
    .join('; ');

  const unreported: ParkedStream[] = [];
  const queue = createSerialQueue();

  /** Runs work serially: on one connection, the steps of two transactions would mix. */
  const serially = <Result>(work: () => Result | Promise<Result>): Promise<Result> =>
    queue.run(() => withReadModelErrors(work));

  /** The checkpoint follows the outcome of the commit. */
  function checkpointSoon(): void {
    if (!checkpoint) return;
    checkpointing ??= setImmediate(() => {
      checkpointing = undefined;
      checkpoint();
    });
  }

  /** Awaits only the steps of the work itself, which never yield the thread to timers or I/O. */
  async function transaction<Result>(work: (rows: RowAccess) => Promise<Result>): Promise<Result> {
    erases = false;
    database.exec('BEGIN IMMEDIATE');
    try {
      const result = await work(rows);
      database.exec('COMMIT');
      checkpointSoon();
      if (erases) walCleanup?.erased();
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
    batchSize: BATCH_SIZE,
    checkpoint: () => serially(() => selectCheckpoint.get() as Checkpoint | undefined),
    apply: (events, reached) =>
      serially(() => {
        pending.beginBatch();
        return applyBatch(events, reached, {
          transaction,
          moveCheckpoint,
          isRowFailure,
          unreported,
        });
      }),
    unindexed: () => serially(words.unindexed),
    unindexedOfAccounts: (after) => serially(() => words.unindexedOfAccounts(after)),
    index: (turns, outOfOrder) =>
      serially(() => transaction(async () => words.index(turns, outOfOrder))),
    forget: (begin) =>
      serially(async () => {
        if (!words.holdsErased()) return 'nothing';
        const forgotten = await transaction(async () => {
          // Rows that wait for a round are many: they are worth rewriting the index at once.
          if (!pending.hasNext()) return words.forget(begin || pending.isAny());
          pending.removeNext();
          erases = !pending.hasNext();
          return 'some';
        });
        if (forgotten === 'all') walCleanup?.erased();
        return forgotten;
      }),
    startOver: () => serially(() => transaction(async () => database.exec(empty))),
    async close() {
      await queue.idle();
      clearImmediate(checkpointing);
      walCleanup?.close();
      if (database.isOpen) database.close();
    },
  };
}

interface GenerationStore extends ProjectionStore {
  generation: number;
}

interface Options {
  folder: string;
  /** The lowest acceptable generation. */
  atLeast?: number;
  version?: Version;
}

/**
 * Opens the current generation of the read models for writing, or creates generation `atLeast` if there
 * is none that high. Throws the errors of the file system and SQLite.
 */
export async function openSqliteProjectionStore({
  folder,
  atLeast = 1,
  version = VERSION,
}: Options): Promise<GenerationStore> {
  const generation = Math.max(currentGeneration(folder, version) ?? 0, atLeast);
  const { startOver: _rebuildsOnly, ...store } = projectionStoreAt({
    folder,
    file: generationFile(folder, generation, version),
    exclusive: false,
    version,
  });
  return { generation, ...store };
}
