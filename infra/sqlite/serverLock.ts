import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { dataFolderError } from './dataFolder.ts';
import { createPrivateFile } from './eventStore/database.ts';
import { isSqliteBusy } from './eventStore/errors.ts';

/** The file that the server of a data folder locks. */
export const serverLockFile = (folder: string): string => join(folder, 'server.lock');

/** Keeps unreleased locks reachable: garbage collection would close their databases. */
const heldLocks = new Set<DatabaseSync>();

/**
 * Makes this process the only server on a data folder until it releases the lock or ends. The lock
 * is an open transaction, which the operating system ends with the process. Operator commands take
 * no lock. A server whose lock file was removed or replaced stops writing
 * (eventStore/fileIdentity.ts), because another server may use the folder. Throws
 * `data_folder_in_use`, and `configuration_invalid` for a folder that can't be written.
 */
export function acquireServerLock(folder: string): { release(): void } {
  const file = serverLockFile(folder);
  let database: DatabaseSync | undefined;
  try {
    createPrivateFile(folder, file);
    database = new DatabaseSync(file, { timeout: 0 });
    // In memory, so that a killed server leaves no journal file behind.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    database?.close();
    if (!isSqliteBusy(error)) throw dataFolderError(folder, error);
    throw new TurnlogError(
      'data_folder_in_use',
      `Another Turnlog server is running on the data folder ${folder}. Stop it first, or give this one a folder of its own with DATA_DIR.`,
      { cause: error },
    );
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
