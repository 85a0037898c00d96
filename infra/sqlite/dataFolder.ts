import { accessSync, constants, mkdirSync, readdirSync, statSync, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { isTurnlogError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../shared/lib/logger.ts';
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
  ELOOP: 'its symbolic links lead in a circle',
};

function folderError(what: string, error: unknown, advice: string): TurnlogError {
  if (isTurnlogError(error)) return error;
  const { code = '', message, path } = error as NodeJS.ErrnoException;
  const reason = REASONS[code];
  const knownReason =
    reason && (path === undefined || what.endsWith(path) ? reason : `${reason} (${path})`);
  return new TurnlogError(
    'configuration_invalid',
    `${what} can't be used: ${sqliteReason(error) ?? knownReason ?? message}. ${advice}`,
    { cause: error },
  );
}

/** The option of the configuration, or of a command, that names a folder. */
export type FolderOption = 'DATA_DIR' | 'KEYS_DIR' | '--from' | '--to';
const FOLDER_NAMES: Readonly<Record<FolderOption, string>> = {
  DATA_DIR: 'data folder',
  KEYS_DIR: 'folder of the keys',
  '--from': 'data folder',
  '--to': 'data folder',
};

/** `configuration_invalid` for a data folder that can't be used; a TurnlogError passes unchanged. */
export const dataFolderError = (
  folder: string,
  error: unknown,
  option: FolderOption = 'DATA_DIR',
): TurnlogError =>
  folderError(
    `The ${FOLDER_NAMES[option]} ${folder}`,
    error,
    `Set ${option} to a folder that this user may write.`,
  );

/** The same for a folder that a backup is written to, or restored to, or a file in it. */
export const backupFolderError = (folder: string, error: unknown): TurnlogError =>
  folderError(
    (error as NodeJS.ErrnoException).path ?? folder,
    error,
    'Then repeat the command: it continues.',
  );

/**
 * True for errors of the file system or SQLite, including those passed from another thread; false
 * for defects.
 */
export const isFileError = (error: unknown): boolean => {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && (code === 'ERR_SQLITE_ERROR' || code in REASONS);
};

/** True for a folder, or a link to one. */
export const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * Creates a folder and its parents one by one, accessible to the owner only. `recursive` of Node.js
 * retries endlessly, ignoring signals, where an existing folder accepts no new entry, as in /proc.
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
export function createDataFolder(folder: string, option?: FolderOption): void {
  try {
    createFolders(folder);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw dataFolderError(folder, error, option);
  }
}

const GROUP_WRITABLE = 0o020;
const WORLD_WRITABLE = 0o002;
/** Folders in a data folder whose entries are checked too. The tiles of a tree are in neither. */
const CHECKED_FOLDERS = ['read-models', 'tlog'];

/** Why other users could change what is at this path, and what to do; undefined if they can't. */
function sharedReason(path: string, stats: Stats): string | undefined {
  const uid = process.getuid?.();
  if (!stats.isFile() && !stats.isDirectory())
    return `${path} is neither a file nor a folder. Remove it.`;
  // Root may have to use folders whose owner it can't change, such as those of other machines.
  if (uid && stats.uid !== 0 && stats.uid !== uid)
    return `${path} belongs to another user (${stats.uid}), who may change it. Give it to the user of the service: chown -R ${uid} ${path}`;
  if ((stats.mode & WORLD_WRITABLE) !== 0)
    return `every user of this machine may change ${path}. Take that away: chmod -R o-w ${path}`;
  return undefined;
}

function* entriesOf(folder: string): Generator<string> {
  yield folder;
  for (const { name } of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, name);
    if (CHECKED_FOLDERS.includes(name) && isFolder(path)) yield* entriesOf(path);
    else yield path;
  }
}

/**
 * Checks that no other user may change a data folder or the files in it, and that they are files: a
 * FIFO would block whatever opens it. Throws `configuration_invalid`, whose message says what to do.
 * Warns of what a group may change, because volumes with an `fsGroup` of Kubernetes are like that.
 */
export function requirePrivateFolder(
  folder: string,
  logger: Pick<Logger, 'warn'>,
  option?: FolderOption,
): void {
  try {
    checkFolder(folder, logger);
  } catch (error) {
    throw dataFolderError(folder, error, option);
  }
}

function checkFolder(folder: string, logger: Pick<Logger, 'warn'>): void {
  let groupWritable: string | undefined;
  for (const path of entriesOf(folder)) {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (!stats) continue;
    const reason = sharedReason(path, stats);
    if (reason !== undefined)
      throw new TurnlogError(
        'configuration_invalid',
        `The data folder ${folder} can't be used: ${reason}`,
      );
    if ((stats.mode & GROUP_WRITABLE) !== 0) groupWritable ??= path;
  }
  if (groupWritable !== undefined)
    logger.warn(
      { path: groupWritable },
      `the group of ${groupWritable} may change it: unless only the service is in that group, chmod -R g-w ${folder}`,
    );
}
