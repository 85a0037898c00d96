import {
  DatabaseSync,
  type SQLInputValue,
  type SQLOutputValue,
  type StatementSync,
} from 'node:sqlite';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { ProgressFeed, ProjectionProgress } from '../../../shared/projections/progress.ts';
import { storeUnavailable } from '../../../shared/errors.ts';
import { readModelsUnavailable } from './failures.ts';
import { generationFile } from './generations.ts';
import { createPositionWaiters } from '../../../shared/projections/positionWaiters.ts';

type Found = Record<string, SQLOutputValue>;

interface Connection {
  generation: number;
  database: DatabaseSync;
  statements: Map<string, StatementSync>;
}

function connect(folder: string, generation: number): Connection {
  const database = new DatabaseSync(generationFile(folder, generation), {
    readOnly: true,
    timeout: 1000,
  });
  try {
    // SQLite opens the -wal with the first read. After that the connection outlives its files, which a rebuild may delete.
    database.prepare('SELECT position FROM checkpoint').get();
  } catch (error) {
    database.close();
    throw error;
  }
  return { generation, database, statements: new Map() };
}

/**
 * A read-only connection in the calling thread that follows the projector from generation to generation. Queries wait for no
 * one: they take microseconds, and a writer never blocks a reader of a WAL database.
 */
export function createReader(folder: string, progress: ProgressFeed) {
  const waiters = createPositionWaiters();
  let connection: Connection | undefined;
  let latest: ProjectionProgress | undefined;
  /** Sticky: after a fall-back the rows are old but whole, and `untilShown` tells who needs newer ones. */
  let complete = false;

  /**
   * Goes over to the copy that the progress speaks of, unless that would show less than has been shown. A copy
   * that has caught up shows the log as it is: the one before is left for it whoever made it and why, because
   * nobody brings that one up to date any more. What a copy that can't be trusted has shown does not count, but
   * it still answers until the one that takes its place has caught up.
   */
  function follow({ generation, position, caughtUp, heals }: ProjectionProgress): boolean {
    if (connection?.generation === generation) return true;
    if (heals) waiters.reset();
    const shown = waiters.shown();
    const showsLess = shown === undefined ? complete : (position ?? '') < shown;
    if (showsLess && !caughtUp) return false;
    const next = connect(folder, generation);
    connection?.database.close();
    connection = next;
    // Nothing that the copy before has shown is known to be in this one.
    waiters.reset();
    return true;
  }

  const unsubscribe = progress.subscribe((news) => {
    latest = news;
    try {
      if (!follow(news)) return;
    } catch {
      // The file is not there for us now; the connection before it still answers, and the next progress tries again.
      return;
    }
    complete ||= news.caughtUp;
    if (news.position !== undefined) waiters.show(news.position);
  });

  function ready(): Connection {
    if (!complete || !connection)
      throw storeUnavailable(
        `The read models are being rebuilt: ${Math.floor(latest?.percent ?? 0)} %`,
      );
    return connection;
  }

  function statement(sql: string): StatementSync {
    const { database, statements } = ready();
    const known = statements.get(sql);
    if (known) return known;
    const prepared = database.prepare(sql);
    statements.set(sql, prepared);
    return prepared;
  }

  function query<Result>(sql: string, run: (prepared: StatementSync) => Result): Result {
    const { database } = ready();
    try {
      return run(statement(sql));
    } catch (error) {
      throw database.isOpen
        ? readModelsUnavailable(error)
        : storeUnavailable('The read models are closed.', error);
    }
  }

  return {
    all: (sql: string, ...parameters: SQLInputValue[]): Found[] =>
      query(sql, (prepared) => prepared.all(...parameters)),
    get: (sql: string, ...parameters: SQLInputValue[]): Found | undefined =>
      query(sql, (prepared) => prepared.get(...parameters)),
    /** Runs queries that all see the same moment. */
    snapshot<Result>(work: () => Result): Result {
      query('BEGIN', (begin) => begin.run());
      try {
        return work();
      } finally {
        query('COMMIT', (commit) => commit.run());
      }
    },
    generation: (): number => ready().generation,
    untilShown: (position: Position, timeoutMs: number): Promise<boolean> =>
      waiters.untilShown(position, timeoutMs),
    close(): void {
      unsubscribe();
      waiters.close();
      if (connection?.database.isOpen) connection.database.close();
    },
  };
}

export type Reader = ReturnType<typeof createReader>;
