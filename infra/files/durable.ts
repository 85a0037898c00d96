/** Files that are there, whole, when what writes them resolves: also after a power failure. */
import { mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { storeUnavailable } from '../../shared/errors.ts';

/** Files that are written at a time: the disk takes them together. */
const AT_A_TIME = 16;

/** A file below a folder. */
export interface Written {
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

/** Writes beside the place and moves it there. Resolves with the folders whose names changed. */
async function put({ path, bytes }: Written, isNew: boolean): Promise<string[]> {
  const folder = dirname(path);
  const made = await mkdir(folder, { recursive: true, mode: 0o700 });
  const handle = await open(`${path}.tmp`, 'w', 0o600);
  try {
    await handle.writeFile(bytes);
    if (!isNew) await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${path}.tmp`, path);
  return made === undefined ? [folder] : foldersAbove(folder, made);
}

async function putAll(files: readonly Written[], isNew: boolean): Promise<void> {
  const folders = new Set<string>();
  for (let at = 0; at < files.length; at += AT_A_TIME) {
    const some = files.slice(at, at + AT_A_TIME);
    const changed = await Promise.all(some.map((file) => put(file, isNew)));
    for (const folder of changed.flat()) folders.add(folder);
  }
  const unsafe = isNew ? files.map(({ path }) => path) : [];
  await Promise.all([...unsafe, ...folders].map(sync));
}

/** Replaces files, each as a whole, also in a power failure. Errors: those of the file system. */
export const putFiles = (files: readonly Written[]): Promise<void> => putAll(files, false);

/**
 * Puts files of which nothing tells yet: in a power failure they may be there and not be whole. The
 * disk is waited for once. Errors: those of the file system.
 */
export const putNewFiles = (files: readonly Written[]): Promise<void> => putAll(files, true);

/** Errors: `store_unavailable` with what the file system says; TurnlogErrors as they are. */
export async function onDisk<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (typeof code !== 'string' || !('errno' in (error as object))) throw error;
    throw storeUnavailable(
      `The files of the transparency log can't be read or written: ${(error as Error).message}.`,
      error,
    );
  }
}

/** True for a file or folder that is not there. */
export const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
