/** Atomic and durable file writes, which survive a power failure once they have resolved. */
import { mkdir, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { storeUnavailableError } from '../../shared/lib/errors/turnlogError.ts';

/** Number of concurrent writes, so that the disk can combine their flushes. */
const AT_A_TIME = 16;

/** A file to write. */
interface FileWrite {
  /** Absolute. */
  path: string;
  bytes: Uint8Array | string;
}

/** Flushes the entries of a folder to disk. */
async function syncFolder(path: string): Promise<void> {
  await using handle = await open(path);
  await handle.sync();
}

/** The folders from `folder` up to the parent of `first`, the topmost new folder. */
function foldersAbove(folder: string, first: string): string[] {
  return folder === dirname(first) ? [folder] : [folder, ...foldersAbove(dirname(folder), first)];
}

/** A temporary file that is written and not flushed, and the folders whose entries changed. */
interface Temporary {
  handle: FileHandle;
  folders: string[];
}

/** Creates a temporary file, and its folder if that is missing. */
async function createTemporary(path: string): Promise<Temporary> {
  const folder = dirname(path);
  const create = (): Promise<FileHandle> => open(`${path}.tmp`, 'wx', 0o600);
  try {
    return { handle: await create(), folders: [folder] };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A crash or another user left it.
    if (code === 'EEXIST') await rm(`${path}.tmp`);
    else if (code !== 'ENOENT') throw error;
  }
  const firstCreated = await mkdir(folder, { recursive: true, mode: 0o700 });
  const folders = firstCreated === undefined ? [folder] : foldersAbove(folder, firstCreated);
  return { handle: await create(), folders };
}

/** Removes the temporary file of a failed write. */
const removeTemporary = ({ path }: FileWrite): Promise<void> => rm(`${path}.tmp`, { force: true });

async function writeTemporary(file: FileWrite): Promise<Temporary> {
  const temporary = await createTemporary(file.path);
  try {
    await temporary.handle.writeFile(file.bytes);
    return temporary;
  } catch (error) {
    await temporary.handle.close();
    await removeTemporary(file);
    throw error;
  }
}

const renameIntoPlace = ({ path }: FileWrite): Promise<void> => rename(`${path}.tmp`, path);

/** Waits until all have settled, then rejects if any of them has failed. */
async function settleAll(promises: readonly Promise<unknown>[]): Promise<void> {
  await Promise.allSettled(promises);
  await Promise.all(promises);
}

/** Replaces a file atomically. */
export async function writeFileAtomically(file: FileWrite): Promise<void> {
  const { handle, folders } = await writeTemporary(file);
  try {
    {
      await using written = handle;
      await written.sync();
    }
    await renameIntoPlace(file);
  } catch (error) {
    await removeTemporary(file);
    throw error;
  }
  await settleAll(folders.map(syncFolder));
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
  await using written = new AsyncDisposableStack();
  const handles: FileHandle[] = [];
  async function write(file: FileWrite): Promise<void> {
    const temporary = await writeTemporary(file);
    handles.push(written.use(temporary.handle));
    for (const folder of temporary.folders) folders.add(folder);
  }
  async function put(file: FileWrite): Promise<void> {
    await write(file);
    await renameIntoPlace(file);
  }
  for (let at = 0; at < files.length; at += AT_A_TIME)
    await settleAll(files.slice(at, at + AT_A_TIME).map(put));
  await write(last);
  const flushed = [
    ...handles.map((handle) => handle.sync()),
    ...[...folders].map(syncFolder),
    beside(),
  ];
  await settleAll(flushed);
  await onDurable();
  await renameIntoPlace(last);
  await syncFolder(dirname(last.path));
}

/**
 * The process or the system has too many open files, or no memory. Any other error may come from the
 * file itself: EAGAIN from a lease on it.
 */
const AWAY = ['EMFILE', 'ENFILE', 'ENOMEM'];

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
      AWAY.includes(code),
    );
  }
}

/** True for the error of a missing file or folder. */
export const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
