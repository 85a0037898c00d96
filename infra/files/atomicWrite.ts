/** Atomic and durable file writes, which survive a power failure once they have resolved. */
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { storeUnavailableError } from '../../shared/lib/errors/turnlogError.ts';

/** Number of concurrent writes, so that the disk can combine their flushes. */
const AT_A_TIME = 16;

/** A file to write. */
export interface FileWrite {
  /** Absolute. */
  path: string;
  bytes: Uint8Array | string;
}

/** Flushes a file, or the entries of a folder, to disk. */
async function sync(path: string): Promise<void> {
  const handle = await open(path);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The folders from `folder` up to the parent of `first`, the topmost new folder. */
function foldersAbove(folder: string, first: string): string[] {
  return folder === dirname(first) ? [folder] : [folder, ...foldersAbove(dirname(folder), first)];
}

/** Writes a new file. Removes a file that a crash or another user left at the path. */
async function writeNew(path: string, bytes: Uint8Array | string): Promise<void> {
  const write = (): Promise<void> => writeFile(path, bytes, { mode: 0o600, flag: 'wx' });
  await write().catch(async (error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await rm(path);
    await write();
  });
}

/**
 * Writes a temporary file and creates its folder. Resolves with the folders whose entries changed.
 */
async function writeTemporary({ path, bytes }: FileWrite): Promise<string[]> {
  const folder = dirname(path);
  const made = await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeNew(`${path}.tmp`, bytes);
  return made === undefined ? [folder] : foldersAbove(folder, made);
}

const renameIntoPlace = ({ path }: FileWrite): Promise<void> => rename(`${path}.tmp`, path);

/** Waits until all have settled, then rejects if any of them has failed. */
async function settleAll(promises: readonly Promise<unknown>[]): Promise<void> {
  await Promise.allSettled(promises);
  await Promise.all(promises);
}

/** Replaces a file atomically. */
export async function writeFileAtomically(file: FileWrite): Promise<void> {
  const folders = await writeTemporary(file);
  await sync(`${file.path}.tmp`);
  await renameIntoPlace(file);
  await settleAll(folders.map(sync));
}

interface NotifyingWrite {
  /** Not referenced yet. A power failure may leave them incomplete. */
  files: readonly FileWrite[];
  /** Further durable writes, started once the folders exist. */
  beside: () => Promise<void>;
  /** Runs once `files` and `beside` are durable. */
  onDurable: () => Promise<void>;
  /** References the files, and is replaced atomically. */
  last: FileWrite;
}

/**
 * Writes files, and then replaces the file that references them. Waits for the disk twice: once for
 * everything before the replacement, and once for the replacement itself.
 */
export async function writeFilesAndNotify({
  files,
  beside,
  onDurable,
  last,
}: NotifyingWrite): Promise<void> {
  const folders = new Set<string>();
  async function put(file: FileWrite): Promise<void> {
    for (const folder of await writeTemporary(file)) folders.add(folder);
    await renameIntoPlace(file);
  }
  for (let at = 0; at < files.length; at += AT_A_TIME)
    await settleAll(files.slice(at, at + AT_A_TIME).map(put));
  for (const folder of await writeTemporary(last)) folders.add(folder);
  const unsafe = [...files.map(({ path }) => path), `${last.path}.tmp`, ...folders];
  await settleAll([...unsafe.map(sync), beside()]);
  await onDurable();
  await renameIntoPlace(last);
  await sync(dirname(last.path));
}

/** Converts file system errors to `store_unavailable`. Rethrows other errors. */
export async function withDiskErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (typeof code !== 'string' || !('errno' in (error as object))) throw error;
    throw storeUnavailableError(
      `The files of the transparency log can't be read or written: ${(error as Error).message}.`,
      error,
    );
  }
}

/** True for the error of a missing file or folder. */
export const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
