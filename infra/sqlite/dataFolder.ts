import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { isTurnlogError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { sqliteReason } from './eventStore/errors.ts';

/** What the operating system says, by the name of its error. */
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

/** True for what the file system or SQLite says, from another thread too; false for a defect. */
export const isFileError = (error: unknown): boolean => {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && (code === 'ERR_SQLITE_ERROR' || code in REASONS);
};

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * Makes a folder and those above it, for their owner alone, one after the other: `recursive` of
 * Node.js tries for ever, deaf to signals, where a folder that is there takes no new one, as in
 * /proc.
 */
export function createFolders(path: string): void {
  if (isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) createFolders(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process was faster.
    if (!isFolder(path)) throw error;
  }
}

/**
 * Makes a folder that only its owner can read, with those above it, where it is not there.
 * Errors: `configuration_invalid` when that is not possible, or when it may not be written.
 */
export function createDataFolder(folder: string): void {
  try {
    createFolders(folder);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw dataFolderError(folder, error);
  }
}
