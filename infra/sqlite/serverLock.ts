import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { dataFolderError, isFolder } from './dataFolder.ts';
import { createPrivateFile } from './eventStore/database.ts';
import { isSqliteBusy } from './eventStore/errors.ts';

/** The file that the server of a data folder locks. */
export const serverLockFile = (folder: string): string => join(folder, 'server.lock');

/** Keeps unreleased locks reachable: garbage collection would close their databases. */
const heldLocks = new Set<DatabaseSync>();

/** SQLite says of a folder only that it can't be opened. */
function requireNoFolder(file: string): void {
  if (isFolder(file))
    throw Object.assign(new Error(`${file} is a folder`), { code: 'EISDIR', path: file });
}

/** Throws unless this process locks the file, until it ends at the latest. */
function acquireLock(
  folder: string,
  file: string,
  inUse: (cause: unknown) => TurnlogError,
): { release(): void } {
  let database: DatabaseSync | undefined;
  try {
    createPrivateFile(folder, file);
    requireNoFolder(file);
    database = new DatabaseSync(file, { timeout: 0 });
    // In memory, so that a killed process leaves no journal file behind.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    database?.close();
    throw isSqliteBusy(error) ? inUse(error) : error;
  }
  const lock = database;
  heldLocks.add(lock);
  return {
    release() {
      heldLocks.delete(lock);
      if (lock.isOpen) lock.close();
    },
  };
}

/**
 * Makes this process the only server on a data folder until it releases the lock or ends. The lock
 * is an open transaction, which the operating system ends with the process. Operator commands take
 * no lock. A server whose lock file was removed or replaced stops writing
 * (eventStore/fileIdentity.ts), because another server may use the folder. Throws
 * `data_folder_in_use`, and `configuration_invalid` for a folder that can't be written.
 */
export function acquireServerLock(folder: string): { release(): void } {
  try {
    return acquireLock(
      folder,
      serverLockFile(folder),
      (cause) =>
        new TurnlogError(
          'data_folder_in_use',
          `Another Turnlog server is running on the data folder ${folder}. Stop it first, or give this one a folder of its own with DATA_DIR.`,
          { cause },
        ),
    );
  } catch (error) {
    throw dataFolderError(folder, error);
  }
}

/** The file that a backup locks in its folder while it writes. */
export const BACKUP_LOCK = 'backup.lock';

/** Makes this process the only one that writes a backup into a folder. Throws `data_folder_in_use`. */
export const acquireBackupLock = (folder: string): { release(): void } =>
  acquireLock(
    folder,
    join(folder, BACKUP_LOCK),
    (cause) =>
      new TurnlogError(
        'data_folder_in_use',
        `Another backup is being written into ${folder}. Wait for it, or name another folder.`,
        { cause },
      ),
  );
