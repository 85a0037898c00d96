import { LRUCache } from 'lru-cache';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { createPositionWaiters } from '../../../shared/projections/positionWaiters.ts';
import type { ProgressSource, ProjectionProgress } from '../../../shared/projections/progress.ts';
import { readModelsUnavailable } from './failures.ts';
import { generationFile } from './generations.ts';
import type { SqliteRow } from './statements.ts';

/** How long a query waits for a lock, in milliseconds. A writer in WAL mode holds none. */
const BUSY_TIMEOUT_MS = 1000;

/** Prepared queries. Filters that clients combine make thousands, of 15 kB each. */
const STATEMENTS = 300;

function open(file: string, generation: number): DatabaseSync {
  const database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    // SQLite opens the -wal with the first read. After that the connection outlives its files,
    // which a rebuild may delete.
    database.prepare('SELECT position FROM checkpoint').get();
    database.function('generation', { deterministic: true }, () => BigInt(generation));
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

/**
 * Queries over one generation; the last ones are kept prepared. Queries reject with `store_unavailable` when it
 * can't be read, or is closed. Throws SQLite's error when the file can't be opened.
 */
export function openGenerationReader(folder: string, generation: number) {
  const database = open(generationFile(folder, generation), generation);
  const statements = new LRUCache<string, StatementSync>({ max: STATEMENTS });

  function statement(sql: string): StatementSync {
    let prepared = statements.get(sql);
    if (!prepared) statements.set(sql, (prepared = database.prepare(sql)));
    return prepared;
  }

  function query<Result>(sql: string, run: (prepared: StatementSync) => Result): Result {
    try {
      return run(statement(sql));
    } catch (error) {
      throw database.isOpen
        ? readModelsUnavailable(error)
        : storeUnavailableError('The read models are closed.', error);
    }
  }

  function* iterate(sql: string, ...parameters: SQLInputValue[]): Generator<SqliteRow> {
    const rows = query(sql, (prepared) => prepared.iterate(...parameters));
    try {
      for (;;) {
        const next = query(sql, () => rows.next());
        if (next.done) return;
        yield next.value;
      }
    } finally {
      // An unfinished iteration would keep the statement and its read transaction open.
      rows.return?.();
    }
  }

  return {
    generation,
    all: (sql: string, ...parameters: SQLInputValue[]): SqliteRow[] =>
      query(sql, (prepared) => prepared.all(...parameters)),
    /** Reads row by row, as far as the caller iterates. The caller must not wait in between. */
    iterate,
    get: (sql: string, ...parameters: SQLInputValue[]): SqliteRow | undefined =>
      query(sql, (prepared) => prepared.get(...parameters)),
    /** Runs queries in one read transaction. */
    snapshot<Result>(work: () => Result): Result {
      query('BEGIN', (begin) => begin.run());
      try {
        return work();
      } finally {
        query('COMMIT', (commit) => commit.run());
      }
    },
    close(): void {
      if (database.isOpen) database.close();
    },
  };
}

export type GenerationReader = ReturnType<typeof openGenerationReader>;

/**
 * Follows the projector from generation to generation, with a connection of the calling thread.
 * Queries never wait: they take microseconds, and a writer does not block readers of a WAL database.
 */
export function createFollower(folder: string, progress: ProgressSource) {
  const waiters = createPositionWaiters();
  let reader: GenerationReader | undefined;
  let latest: ProjectionProgress | undefined;
  /** Never reset: after a fallback the rows are old but complete; `untilShown` covers newer ones. */
  let complete = false;

  /**
   * Switches to the generation that the progress names, unless it would show less than has been shown.
   * A generation that has caught up is always taken, because the previous one is no longer updated.
   * The progress of an untrusted generation does not count, but it answers until its replacement has
   * caught up.
   */
  function follow({ generation, position, caughtUp, heals }: ProjectionProgress): boolean {
    if (reader?.generation === generation) return true;
    if (heals) waiters.reset();
    const shown = waiters.shown();
    const showsLess = shown === undefined ? complete : (position ?? '') < shown;
    if (showsLess && !caughtUp) return false;
    const next = openGenerationReader(folder, generation);
    reader?.close();
    reader = next;
    // Positions shown by the previous generation need not be in this one.
    waiters.reset();
    return true;
  }

  const unsubscribe = progress.subscribe((news) => {
    latest = news;
    try {
      if (!follow(news)) return;
    } catch {
      // The file can't be opened now. The previous connection still answers, and the next progress
      // tries again.
      return;
    }
    complete ||= news.caughtUp;
    if (news.position !== undefined) waiters.show(news.position);
    // The batch may have been read before the position that a reader waits for was written.
    if (waiters.isAwaited()) progress.request?.();
  });

  return {
    /**
     * The generation that answers queries. Throws `store_unavailable` until the projector has caught up
     * once.
     */
    current(): GenerationReader {
      if (!complete || !reader)
        throw storeUnavailableError(
          `The read models are being rebuilt: ${Math.floor(latest?.percent ?? 0)} %`,
        );
      return reader;
    },
    /** Everything up to this position is shown; undefined while no batch was applied. */
    shown: waiters.shown,
    untilShown(position: Position, timeoutMs: number): Promise<boolean> {
      const shown = waiters.untilShown(position, timeoutMs);
      if (waiters.isAwaited()) progress.request?.();
      return shown;
    },
    close(): void {
      unsubscribe();
      waiters.close();
      reader?.close();
    },
  };
}
