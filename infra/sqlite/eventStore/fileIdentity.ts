import { accessSync, constants, statfsSync, statSync, type StatsFs } from 'node:fs';
import { basename, dirname } from 'node:path';
import { serverLockFile } from '../serverLock.ts';

interface FileIdentity {
  path: string;
  dev: number;
  ino: number;
  /** In bytes, the most that it was seen to have; undefined for a file that may shrink. */
  size: number | undefined;
}

/**
 * The files of a log, by what the system knows them by whatever their names are. SQLite goes on
 * writing into files that were removed or replaced, and nobody would ever find what it wrote. Plain
 * data, so that it can be handed to a thread, which goes on by itself from there.
 */
export type LogFiles = readonly FileIdentity[];

const statIfExists = (path: string) => statSync(path, { throwIfNoEntry: false });

/**
 * The files of an open log: to be asked while a connection has its -wal and -shm open. With the
 * lock of the folder's server, where there is one: without it, another server could come in.
 */
export function identifyFiles(file: string): LogFiles {
  const paths = [file, `${file}-wal`, `${file}-shm`, serverLockFile(dirname(file))];
  return paths.flatMap((path) => {
    const found = statIfExists(path);
    const { dev, ino, size } = found ?? {};
    if (dev === undefined || ino === undefined) return [];
    return [{ path, dev, ino, size: path === file ? size : undefined }];
  });
}

/**
 * The log's own file only grows: one that is shorter than it was has been written over, by `cp` of a
 * backup say, which keeps what the system knows it by. SQLite itself does not notice, and answers
 * from what it has in memory.
 */
function compareFile(known: FileIdentity): 'same' | 'gone' | 'another' | 'shorter' {
  const { path, dev, ino, size } = known;
  let found: ReturnType<typeof statIfExists>;
  try {
    found = statIfExists(path);
  } catch {
    // A folder on the way that may not be searched, or is a file now.
    return 'gone';
  }
  if (!found) return 'gone';
  if (found.dev !== dev || found.ino !== ino) return 'another';
  if (size === undefined) return 'same';
  if (found.size < size) return 'shorter';
  known.size = found.size;
  return 'same';
}

const CHANGE_DESCRIPTIONS = {
  gone: 'is gone',
  another: 'is another than the one that was opened',
  shorter: 'was written over with a shorter one',
};

/** What has become of the files since, as half a sentence; undefined while they are the same. */
export function describeFileChange(files: LogFiles): string | undefined {
  for (const known of files) {
    const fate = compareFile(known);
    if (fate === 'same') continue;
    return `its file ${basename(known.path)} ${CHANGE_DESCRIPTIONS[fate]}`;
  }
  return undefined;
}

/**
 * True where all that is missing is the -wal: what was committed into it can still be brought into
 * the log's file, over the connections that have it open. Not once another one is in its place,
 * which somebody may have written to.
 */
export const isOnlyWalMissing = (files: LogFiles): boolean =>
  files.every((known) => compareFile(known) === (known.path.endsWith('-wal') ? 'gone' : 'same'));

interface DiskProbe {
  accessSync: (file: string, mode: number) => void;
  statfsSync: (folder: string) => Pick<StatsFs, 'blocks' | 'bsize' | 'bavail' | 'bfree'>;
}

/** Room that a commit may need. Some file systems keep a rest for the administrator. */
const MIN_FREE_BYTES = 64 * 1024;

/**
 * Why nothing can be written to the file, as half a sentence; undefined where nothing is known. Takes
 * microseconds, and needs no append to find out.
 */
export function unwritableReason(
  file: string,
  disk: DiskProbe = { accessSync, statfsSync },
): string | undefined {
  try {
    disk.accessSync(file, constants.W_OK);
    const { blocks, bsize, bavail, bfree } = disk.statfsSync(dirname(file));
    const free = process.getuid?.() === 0 ? bfree : bavail;
    return blocks > 0 && free * bsize < MIN_FREE_BYTES ? 'the disk is full' : undefined;
  } catch {
    return 'it may not be written';
  }
}
