import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { isTurnlogError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { sqliteReason } from './eventStore/errors.ts';

/** Reasons for file system errors, by error code. */
const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of this user is used up',
  EEXIST: 'a file is in the way',
  ENOTDIR: 'a file is in the way',
  EISDIR: 'a folder stands where a file should be',
  ENOENT: 'the file system takes no new folder or file there',
  ENAMETOOLONG: 'its name is too long',
};

/** `configuration_invalid` for a data folder that can't be used; a TurnlogError passes unchanged. */
export function dataFolderError(folder: string, error: unknown): TurnlogError {
  if (isTurnlogError(error)) return error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  return new TurnlogError(
    'configuration_invalid',
    `The data folder ${folder} can't be used: ${sqliteReason(error) ?? REASONS[code] ?? message}. Set DATA_DIR to a folder that this user may write.`,
    { cause: error },
  );
}

/**
 * True for errors of the file system or SQLite, including those passed from another thread; false
 * for defects.
 */
export const isFileError = (error: unknown): boolean => {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && (code === 'ERR_SQLITE_ERROR' || code in REASONS);
};

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * Creates a folder and its parents one by one, accessible to the owner only. `recursive` of Node.js
 * retries forever, ignoring signals, where an existing folder accepts no new entry, as in /proc.
 */
export function createFolders(path: string): void {
  if (isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) createFolders(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it first.
    if (!isFolder(path)) throw error;
  }
}

/**
 * Creates a folder and its parents if they do not exist, accessible to the owner only. Throws
 * `configuration_invalid` if that fails or the folder is not readable and writable.
 */
export function createDataFolder(folder: string): void {
  try {
    createFolders(folder);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw dataFolderError(folder, error);
  }
}
