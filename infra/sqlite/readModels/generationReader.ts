import {
  DatabaseSync,
  type SQLInputValue,
  type SQLOutputValue,
  type StatementSync,
} from 'node:sqlite';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import { readModelsUnavailable } from './failures.ts';
import { generationFile } from './generations.ts';

export type Found = Record<string, SQLOutputValue>;

/** How long a query waits for a lock, in milliseconds. A writer in WAL mode holds none. */
const BUSY_TIMEOUT_MS = 1000;

function open(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    // SQLite opens the -wal with the first read. After that the connection outlives its files,
    // which a rebuild may delete.
    database.prepare('SELECT position FROM checkpoint').get();
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

/**
 * Queries over one generation, each prepared once. They reject with `store_unavailable` when it
 * can't be read, or was closed.
 * Errors: what SQLite throws when the file can't be opened.
 */
export function openGenerationReader(folder: string, generation: number) {
  const database = open(generationFile(folder, generation));
  const statements = new Map<string, StatementSync>();

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

  function* iterate(sql: string, ...parameters: SQLInputValue[]): Generator<Found> {
    const rows = query(sql, (prepared) => prepared.iterate(...parameters));
    try {
      for (;;) {
        const next = query(sql, () => rows.next());
        if (next.done) return;
        yield next.value;
      }
    } finally {
      // An iteration that is left early keeps the statement, and so the moment that it reads, open.
      rows.return?.();
    }
  }

  return {
    generation,
    all: (sql: string, ...parameters: SQLInputValue[]): Found[] =>
      query(sql, (prepared) => prepared.all(...parameters)),
    /** Row after row, no further than they are asked for, which is to be at once. */
    iterate,
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
    close(): void {
      if (database.isOpen) database.close();
    },
  };
}

export type GenerationReader = ReturnType<typeof openGenerationReader>;
