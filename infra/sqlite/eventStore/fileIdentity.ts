import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { serverLockFile } from '../serverLock.ts';

interface FileIdentity {
  path: string;
  dev: number;
  ino: number;
  /** The largest size observed, in bytes; undefined for a file that may shrink. */
  size: number | undefined;
}

/**
 * Identifies the files of a log by device and inode, whatever their names are. SQLite continues to
 * write to files that were removed or replaced, and such writes would be lost. Plain data, so that
 * it can be passed to a thread, which then updates its own copy.
 */
export type LogFiles = readonly FileIdentity[];

const statIfExists = (path: string) => statSync(path, { throwIfNoEntry: false });

/**
 * Identifies the files of an open log. Call it while a connection has the -wal and -shm open.
 * Includes the lock file of the folder's server if there is one: without it, another server could
 * start in the folder.
 */
export function identifyFiles(file: string): LogFiles {
  const paths = [file, `${file}-wal`, `${file}-shm`, serverLockFile(dirname(file))];
  return paths.flatMap((path) => {
    const stats = statIfExists(path);
    const { dev, ino, size } = stats ?? {};
    if (dev === undefined || ino === undefined) return [];
    return [{ path, dev, ino, size: path === file ? size : undefined }];
  });
}

/**
 * The main file of a log only grows. A shorter file was overwritten in place, for example by `cp`
 * of a backup, which keeps the inode. SQLite does not notice that and answers from its cache.
 */
function compareFile(expected: FileIdentity): 'same' | 'gone' | 'another' | 'shorter' {
  const { path, dev, ino, size } = expected;
  let stats: ReturnType<typeof statIfExists>;
  try {
    stats = statIfExists(path);
  } catch {
    // A parent folder is not searchable, or is now a file.
    return 'gone';
  }
  if (!stats) return 'gone';
  if (stats.dev !== dev || stats.ino !== ino) return 'another';
  if (size === undefined) return 'same';
  if (stats.size < size) return 'shorter';
  expected.size = stats.size;
  return 'same';
}

const CHANGE_DESCRIPTIONS = {
  gone: 'is gone',
  another: 'is another than the one that was opened',
  shorter: 'was written over with a shorter one',
};

/** Describes the first change of the files as a clause; undefined while they are unchanged. */
export function describeFileChange(files: LogFiles): string | undefined {
  for (const file of files) {
    const change = compareFile(file);
    if (change === 'same') continue;
    return `its file ${basename(file.path)} ${CHANGE_DESCRIPTIONS[change]}`;
  }
  return undefined;
}

/**
 * True if only the -wal is missing. Its commits can then still be checkpointed into the log's file
 * over the open connections. False once another -wal is in its place, because another process may
 * have written to it.
 */
export const isOnlyWalMissing = (files: LogFiles): boolean =>
  files.every((file) => compareFile(file) === (file.path.endsWith('-wal') ? 'gone' : 'same'));
