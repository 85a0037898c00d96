import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { createPrivateFile } from '../eventStore/database.ts';
import { openFailureReason } from '../eventStore/unwritable.ts';

/** Identifies a key store database: `keys` in ASCII. */
const APPLICATION_ID = 0x6b657973;
const VERSION = 1;

/**
 * Rows are only appended, and a rewrapped key has the same length. SQLite therefore never moves a
 * wrapped key to another page, which would leave a copy behind. It moves only the index, which
 * contains only ids. A destroyed key is a row without a wrapped key.
 */
const SCHEMA = `
  CREATE TABLE text_keys (
    n             INTEGER PRIMARY KEY,
    key_id        TEXT NOT NULL UNIQUE CHECK (length(key_id) = 16),
    master_key_id TEXT CHECK (length(master_key_id) = 16),
    wrapped       BLOB CHECK (length(wrapped) = 60),
    CHECK ((master_key_id IS NULL) = (wrapped IS NULL))
  ) STRICT;
  CREATE TABLE erasures (
    n      INTEGER PRIMARY KEY,
    stream TEXT NOT NULL UNIQUE,
    why    TEXT NOT NULL
  ) STRICT;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${VERSION};`;

export const keyStoreFile = (folder: string): string => join(folder, 'keys.db');

const keyStoreError = (file: string, why: string, cause?: unknown): TurnlogError =>
  new TurnlogError('store_unavailable', `The key store ${file} cannot be opened: ${why}.`, {
    cause,
  });

/** Flushes the entries of a folder to disk. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/**
 * Creates the file atomically, with its tables. An existing file without tables is therefore
 * damaged, never new.
 */
function createKeyStoreFile(folder: string, file: string): void {
  const temporaryFile = `${file}.${randomUUID()}`;
  try {
    createPrivateFile(folder, temporaryFile);
    const database = new DatabaseSync(temporaryFile);
    try {
      database.exec(`PRAGMA journal_mode = WAL; BEGIN; ${SCHEMA} COMMIT;`);
    } finally {
      database.close();
    }
    linkSync(temporaryFile, file);
  } catch (error) {
    // Another process may have created it first.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${temporaryFile}${suffix}`, { force: true });
  }
  syncFolder(folder);
}

const pragma = (database: DatabaseSync, name: string): unknown =>
  Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];

function requireKeyStore(database: DatabaseSync, file: string): void {
  const version = pragma(database, 'user_version');
  if (pragma(database, 'application_id') !== APPLICATION_ID)
    throw keyStoreError(file, 'it is no key store, or lost what was in it');
  if (version !== VERSION)
    throw keyStoreError(
      file,
      `its version is ${String(version)} where this Turnlog has ${VERSION}`,
    );
}

/**
 * Opens the key store of a folder, and creates it if there is none. Throws a `store_unavailable`
 * that is not retriable for a file that is damaged or not a key store.
 */
export function openKeyDatabase(folder: string): DatabaseSync {
  const file = keyStoreFile(folder);
  let database: DatabaseSync | undefined;
  try {
    if (!existsSync(file)) createKeyStoreFile(folder, file);
    database = new DatabaseSync(file, { timeout: 5000 });
    requireKeyStore(database, file);
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    database.exec('PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY');
    // Also opens the -wal and the -shm, so that changes of these files can be detected.
    database.exec('BEGIN IMMEDIATE; ROLLBACK');
    // From here on, callers wait without blocking the thread.
    database.exec('PRAGMA busy_timeout = 0');
    return database;
  } catch (error) {
    database?.close();
    if (isTurnlogError(error)) throw error;
    throw keyStoreError(file, openFailureReason(file, error), error);
  }
}

/**
 * Puts the key store of another folder in place of that of a folder, which moves into a new folder within it;
 * returns that one. Durable when it returns. Throws `store_unavailable` while a process uses the key store.
 */
export function replaceKeyStore(folder: string, successor: string): string {
  const file = keyStoreFile(folder);
  const database = openKeyDatabase(folder);
  try {
    // Without the other two files it is moved atomically. SQLite refuses this while others have it open.
    database.exec('PRAGMA journal_mode = DELETE');
  } catch (error) {
    throw keyStoreError(file, 'another process uses it; stop that process first', error);
  } finally {
    database.close();
  }
  const aside = mkdtempSync(join(folder, 'keys-set-aside-'));
  renameSync(file, keyStoreFile(aside));
  renameSync(keyStoreFile(successor), file);
  for (const changed of [aside, folder]) syncFolder(changed);
  return aside;
}
