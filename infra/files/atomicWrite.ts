/** Files that are there, whole, when what writes them resolves: also after a power failure. */
import { mkdir, open, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { storeUnavailableError } from '../../shared/lib/errors/turnlogError.ts';

/** Files that are written at a time: the disk takes them together. */
const AT_A_TIME = 16;

/** A file below a folder. */
export interface FileWrite {
  /** Absolute. */
  path: string;
  bytes: Uint8Array | string;
}

/** Makes a file durable, or the names in a folder. */
async function sync(path: string): Promise<void> {
  const handle = await open(path);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The folders up to and with the one that is above `first`, which was just made. */
function foldersAbove(folder: string, first: string): string[] {
  return folder === dirname(first) ? [folder] : [folder, ...foldersAbove(dirname(folder), first)];
}

/** Writes beside the place, in a folder that is made. Resolves with the folders that have other names. */
async function writeTemporary({ path, bytes }: FileWrite): Promise<string[]> {
  const folder = dirname(path);
  const made = await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(`${path}.tmp`, bytes, { mode: 0o600 });
  return made === undefined ? [folder] : foldersAbove(folder, made);
}

const renameIntoPlace = ({ path }: FileWrite): Promise<void> => rename(`${path}.tmp`, path);

/** All of them have ended when it does. Errors: the first one's. */
async function settleAll(works: readonly Promise<unknown>[]): Promise<void> {
  await Promise.allSettled(works);
  await Promise.all(works);
}

/** Replaces a file as a whole. Errors: those of the file system. */
export async function writeFileAtomically(file: FileWrite): Promise<void> {
  const folders = await writeTemporary(file);
  await sync(`${file.path}.tmp`);
  await renameIntoPlace(file);
  await settleAll(folders.map(sync));
}

interface NotifyingWrite {
  /** Of which nothing tells yet: in a power failure they may be there and not be whole. */
  files: readonly FileWrite[];
  /** What is to be durable with them, in folders that are there by then. */
  beside: () => Promise<void>;
  /** What may be done once they are durable. */
  onDurable: () => Promise<void>;
  /** Tells of them, and is replaced as a whole. */
  last: FileWrite;
}

/**
 * Puts files, and then the one that tells of them: the disk is waited for once for all before that
 * takes its place, and once more then. Errors: those of the file system.
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

/** Errors: `store_unavailable` with what the file system says; TurnlogErrors as they are. */
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

/** True for a file or folder that is not there. */
export const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
