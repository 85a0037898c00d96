/**
 * The folders of a backup. One has the shape of a data folder: `events.db`, `tlog/` and
 * `webhook-progress`. The other one has the keys: `keys.db`, `master.key` and `log-signing-key.pem`. Each
 * has a `backup.json`, by which they belong together.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, lstat, readdir, realpath, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import type { Static } from 'typebox';
import { Type } from '../../../../shared/domain/jsonSchema.ts';
import { writeFileAtomically } from '../../../../infra/files/atomicWrite.ts';
import { openRegularFile, readRegularFile } from '../../../../infra/lib/regularFile.ts';
import { closeDatabaseFiles } from '../../../../infra/sqlite/backup.ts';
import {
  backupFolderError,
  createFolders,
  isFileError,
} from '../../../../infra/sqlite/dataFolder.ts';
import { acquireBackupLock, BACKUP_LOCK } from '../../../../infra/sqlite/serverLock.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { lazyValidator } from '../../../../shared/lib/validation/validation.ts';
import { systemIds } from '../../system.ts';
import { MANIFEST_FILE } from './unfinishedRestore.ts';

export interface BackupFolders {
  /** Absolute, without symbolic links. */
  folder: string;
  keysFolder: string;
}

const FileDigest = Type.Object({ name: Type.String(), sha256: Type.String() });
type FileDigest = Static<typeof FileDigest>;

const common = { turnlog_backup: Type.Literal(1), id: Type.String() };
const Unfinished = Type.Object({ ...common, complete: Type.Literal(false) });
const Finished = Type.Object({
  ...common,
  complete: Type.Literal(true),
  /** Its moment: UTC, ISO 8601. */
  at: Type.String(),
  /** LOG_ORIGIN. */
  origin: Type.String(),
  /** Null if the log is in a cluster. */
  log: Type.Union([
    Type.Object({ log_id: Type.String(), events: Type.Integer(), position: Type.String() }),
    Type.Null(),
  ]),
  /** The leaves of the transparency log; null if it is in a database, or there is none. */
  leaves: Type.Union([Type.Integer(), Type.Null()]),
  /** Null if it fits, or could not be verified; else what does not fit. */
  misfit: Type.Union([Type.String(), Type.Null()]),
  files: Type.Array(FileDigest),
});
/** `backup.json` of a complete backup. */
export type BackupManifest = Static<typeof Finished>;
type Manifest = BackupManifest | Static<typeof Unfinished>;

const isManifest = lazyValidator(Type.Union([Finished, Unfinished]));

/** The folder of the keys in a backup that has them beside its log. */
export const KEYS_BESIDE = 'keys';

export const backupError = (message: string): TurnlogError =>
  new TurnlogError('configuration_invalid', message);

/** Names the folder in errors of the file system, such as a full disk. */
export async function withFolderErrors<Result>(
  folder: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw isFileError(error) ? backupFolderError(folder, error) : error;
  }
}

const absent = (error: NodeJS.ErrnoException): undefined => {
  if (error.code === 'ENOENT') return undefined;
  throw error;
};

/** The path without symbolic links, also if it does not exist yet. */
export async function realPathOf(path: string): Promise<string> {
  const resolved = await realpath(path).catch(absent);
  if (resolved !== undefined) return resolved;
  if (await lstat(path).catch(absent))
    throw backupError(`${path} is a symbolic link that leads nowhere.`);
  return join(await realPathOf(dirname(path)), basename(path));
}

const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);

/** Throws `configuration_invalid` if one of the folders is the other one, or in it. */
export function requireApart(folder: string, other: string, what: string): void {
  if (isWithin(folder, other) || isWithin(other, folder))
    throw backupError(`${folder} and ${what} ${other} must not contain each other.`);
}

/** The names in a folder; undefined if there is none. Throws if one of them is a symbolic link. */
export async function namesIn(folder: string): Promise<string[] | undefined> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOTDIR') throw backupError(`${folder} is not a folder.`);
      return absent(error);
    },
  );
  const strange = entries?.find((entry) => !entry.isFile() && !entry.isDirectory());
  if (strange) throw backupError(`${join(folder, strange.name)} is neither a file nor a folder.`);
  // The root of a file system may have it.
  return entries?.map(({ name }) => name).filter((name) => name !== 'lost+found');
}

async function readManifest(folder: string): Promise<Manifest | undefined> {
  const file = join(folder, MANIFEST_FILE);
  const text = (await readRegularFile(file).catch(absent))?.toString();
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (isManifest()(value)) return value;
  } catch {
    // Invalid JSON gives the error below.
  }
  throw backupError(`${file} is damaged, or of another release of Turnlog.`);
}

const writeManifest = (folder: string, manifest: Manifest): Promise<void> =>
  writeFileAtomically({
    path: join(folder, MANIFEST_FILE),
    bytes: `${JSON.stringify(manifest, null, 2)}\n`,
  });

async function createFolder(folder: string): Promise<void> {
  createFolders(folder);
  await chmod(folder, 0o700);
}

/** Left in a folder without a manifest by a backup that was killed at its beginning. */
const LEFTOVERS: readonly string[] = [BACKUP_LOCK, `${MANIFEST_FILE}.tmp`];

/** Throws for a folder with anything but an unfinished backup; undefined if it is empty. */
async function findUnfinished(folder: string): Promise<Manifest | undefined> {
  const names = await namesIn(folder);
  if (!names || names.length === 0) return undefined;
  const manifest = await readManifest(folder);
  if (!manifest && names.some((name) => !LEFTOVERS.includes(name)))
    throw backupError(`${folder} is not empty. Name a new folder for the backup.`);
  return manifest;
}

/**
 * Makes the folders of a backup, or finds those of one that was interrupted. Throws
 * `configuration_invalid` for folders with anything else, such as a complete backup, and
 * `data_folder_in_use` while another process writes this backup.
 */
export async function beginBackup({
  folder,
  keysFolder,
}: BackupFolders): Promise<{ id: string; resumed: boolean; release(): void }> {
  const unfinished = await findUnfinished(folder);
  if (unfinished?.complete)
    throw backupError(
      `${folder} holds the backup of ${unfinished.at}. It is not changed: name another folder.`,
    );
  const keys = await findUnfinished(keysFolder);
  if (keys && keys.id !== unfinished?.id)
    throw backupError(`${keysFolder} holds the keys of another backup. Name another folder.`);
  await createFolder(folder);
  const lock = acquireBackupLock(folder);
  try {
    await createFolder(keysFolder);
    const id = unfinished?.id ?? systemIds.uuid();
    for (const target of [folder, keysFolder])
      await writeManifest(target, { turnlog_backup: 1, id, complete: false });
    return { id, resumed: unfinished !== undefined, release: lock.release };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Opens a regular file. A symbolic link in its place is not followed. */
export const openToRead = (file: string): Promise<FileHandle> =>
  openRegularFile(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));

async function digestFile(file: string): Promise<string> {
  const digest = createHash('sha256');
  const handle = await openToRead(file);
  for await (const chunk of handle.createReadStream()) digest.update(chunk as Buffer);
  return digest.digest('hex');
}

/** The digests of all files in a folder, with names relative to it, but for the tiles of a tree. */
async function digestFiles(folder: string, prefix = ''): Promise<FileDigest[]> {
  const digests: FileDigest[] = [];
  for (const name of (await namesIn(join(folder, prefix))) ?? []) {
    const path = join(prefix, name);
    if (path === MANIFEST_FILE || path === BACKUP_LOCK || path === KEYS_BESIDE) continue;
    const isFolder = (await lstat(join(folder, path))).isDirectory();
    // They are compared with the log and the checkpoint.
    if (isFolder && name === 'tile' && prefix.startsWith('tlog')) continue;
    if (isFolder) digests.push(...(await digestFiles(folder, path)));
    else digests.push({ name: path, sha256: await digestFile(join(folder, path)) });
  }
  return digests;
}

/** Makes single files of the databases, which read-only media can hold too. */
export const closeBackupDatabases = ({ folder, keysFolder }: BackupFolders): void =>
  [folder, keysFolder].forEach(closeDatabaseFiles);

/** Completes a backup: the folder of the log last. */
export async function completeBackup(
  { folder, keysFolder }: BackupFolders,
  described: Omit<BackupManifest, 'files' | 'complete' | 'turnlog_backup'>,
): Promise<void> {
  for (const one of [keysFolder, folder]) {
    const files = await digestFiles(one);
    await writeManifest(one, { turnlog_backup: 1, ...described, complete: true, files });
  }
}

/** Throws `configuration_invalid` for a file that was changed or added, or is missing. */
async function requireUnchanged(folder: string, { files }: BackupManifest): Promise<void> {
  const digests = new Map((await digestFiles(folder)).map(({ name, sha256 }) => [name, sha256]));
  for (const { name, sha256 } of files) {
    const file = join(folder, name);
    if (!digests.has(name)) throw backupError(`The backup is damaged: ${file} is missing.`);
    if (digests.get(name) !== sha256)
      throw backupError(`The backup is damaged: ${file} is not the file that was written.`);
    digests.delete(name);
  }
  const [added] = digests.keys();
  if (added !== undefined)
    throw backupError(`${join(folder, added)} is not part of the backup. Remove it.`);
}

async function readComplete(folder: string): Promise<BackupManifest> {
  const manifest = await readManifest(folder);
  if (!manifest) throw backupError(`There is no backup in ${folder}: it has no ${MANIFEST_FILE}.`);
  if (manifest.complete) return manifest;
  throw backupError(`The backup in ${folder} is not complete: run the same backup command again.`);
}

/**
 * Opens a complete backup whose files are those that were written. Throws `configuration_invalid` for
 * any other, and for the keys of another backup.
 */
export async function openBackup({ folder, keysFolder }: BackupFolders): Promise<BackupManifest> {
  const manifest = await readComplete(folder);
  const keys = await readComplete(keysFolder);
  if (keys.id !== manifest.id)
    throw backupError(
      `The keys in ${keysFolder} are of another backup, of ${keys.at}: the one in ${folder} is of ${manifest.at}. Name the folder of its keys with --keys.`,
    );
  await requireUnchanged(folder, manifest);
  await requireUnchanged(keysFolder, keys);
  return manifest;
}
