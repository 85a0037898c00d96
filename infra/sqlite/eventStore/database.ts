import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isTurnlogError, type TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { createFolders } from '../dataFolder.ts';
import { cannotOpenError, isSqliteBusy } from './errors.ts';
import { openFailureReason } from './unwritable.ts';

/** How long a connection waits for another process's transaction, in milliseconds. */
const BUSY_TIMEOUT_MS = 5000;

/** Step n migrates a database from user_version n to n + 1. Never change a released step. */
const MIGRATIONS = [
  `CREATE TABLE events (
     position INTEGER PRIMARY KEY,
     stream   TEXT NOT NULL,
     revision INTEGER NOT NULL,
     id       TEXT NOT NULL UNIQUE,
     type     TEXT NOT NULL,
     data     TEXT NOT NULL,
     metadata TEXT NOT NULL,
     UNIQUE (stream, revision)
   ) STRICT`,
];

export const eventLogFile = (folder: string): string => join(folder, 'events.db');

const schemaVersion = (database: DatabaseSync): number =>
  Number(database.prepare('PRAGMA user_version').get()?.['user_version']);

/**
 * Creates the folder and an empty file with owner-only permissions. Leaves existing ones unchanged.
 */
export function createPrivateFile(folder: string, file: string): void {
  createFolders(folder);
  try {
    // 'wx' never opens an existing file: closing any descriptor of it would release SQLite's POSIX
    // locks on it.
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function migrate(database: DatabaseSync, file: string): void {
  database.exec('BEGIN IMMEDIATE');
  const version = schemaVersion(database);
  if (version > MIGRATIONS.length) {
    throw cannotOpenError(
      file,
      `it was written by a newer version of Turnlog (schema ${version}, this version knows ${MIGRATIONS.length})`,
    );
  }
  for (const step of MIGRATIONS.slice(version)) database.exec(step);
  database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
  database.exec('COMMIT');
}

/** Switching a new file to WAL needs an exclusive lock, for which SQLite does not wait. */
function useWriteAheadLog(database: DatabaseSync): void {
  const deadline = performance.now() + BUSY_TIMEOUT_MS;
  for (;;) {
    try {
      database.exec('PRAGMA journal_mode = WAL');
      return;
    } catch (error) {
      if (!isSqliteBusy(error) || performance.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

/** Converts an error thrown by node:sqlite; a TurnlogError passes unchanged. */
const toCannotOpenError = (file: string, error: unknown): TurnlogError =>
  isTurnlogError(error) ? error : cannotOpenError(file, openFailureReason(file, error), error);

function openDatabase(
  file: string,
  readOnly: boolean,
  prepare: (database: DatabaseSync) => void,
): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { readOnly, timeout: BUSY_TIMEOUT_MS });
    prepare(database);
    return database;
  } catch (error) {
    database?.close();
    throw toCannotOpenError(file, error);
  }
}

/**
 * Opens a writable connection and migrates the schema. Throws a `store_unavailable` that is not
 * retriable if the file is damaged or was written by a newer version of Turnlog.
 */
export const openForWriting = (file: string): DatabaseSync =>
  openDatabase(file, false, (database) => {
    useWriteAheadLog(database);
    // FULL makes every commit durable before it returns. The limit returns disk space after a large
    // transaction.
    database.exec('PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864');
    migrate(database, file);
  });

/**
 * Opens a read-only connection. Throws a `store_unavailable` that is not retriable if there is no
 * log of this version.
 */
export const openForReading = (file: string): DatabaseSync =>
  openDatabase(file, true, (database) => {
    const version = schemaVersion(database);
    if (version !== MIGRATIONS.length)
      throw cannotOpenError(
        file,
        `its schema is ${version} where this version of Turnlog reads ${MIGRATIONS.length}`,
      );
  });

/**
 * Matches only encrypted texts: in JSON, a quote inside a string is escaped. Searches the newest
 * events first.
 */
const BOX = `SELECT 1 FROM events WHERE instr(data, '"box":"') > 0 ORDER BY position DESC LIMIT 1`;

/**
 * Returns true if the log of a folder contains encrypted texts. Creates no files, and scans a log
 * without encrypted texts completely. Throws a `store_unavailable` that is not retriable.
 */
export function hasProtectedTexts(folder: string): boolean {
  const file = eventLogFile(folder);
  if (!existsSync(file)) return false;
  const database = openDatabase(file, true, () => undefined);
  try {
    return schemaVersion(database) > 0 && database.prepare(BOX).get() !== undefined;
  } catch (error) {
    throw toCannotOpenError(file, error);
  } finally {
    database.close();
  }
}
