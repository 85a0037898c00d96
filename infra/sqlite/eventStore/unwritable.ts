/** Why a file of SQLite can't be written or opened. */
import { accessSync, constants, statfsSync, type StatsFs } from 'node:fs';
import { sqliteCode, sqliteReason } from './errors.ts';

/** SQLite's primary result code (https://sqlite.org/rescode.html). */
const IO_ERROR = 10;

interface DiskProbe {
  accessSync: (file: string, mode: number) => void;
  statfsSync: (file: string) => Pick<StatsFs, 'blocks' | 'bsize' | 'bavail' | 'bfree'>;
}

/**
 * The free space that a commit may need. Some file systems reserve a share for the administrator.
 */
const MIN_FREE_BYTES = 64 * 1024;

/**
 * Why the file can't be written, as a clause; undefined if no reason is known. Takes microseconds
 * and does not need an append.
 */
export function unwritableReason(
  file: string,
  disk: DiskProbe = { accessSync, statfsSync },
): string | undefined {
  try {
    disk.accessSync(file, constants.W_OK);
    const { blocks, bsize, bavail, bfree } = disk.statfsSync(file);
    const free = process.getuid?.() === 0 ? bfree : bavail;
    return blocks > 0 && free * bsize < MIN_FREE_BYTES ? 'the disk is full' : undefined;
  } catch {
    return 'it may not be written';
  }
}

/**
 * Why SQLite could not open a file, as a clause. On a full disk it reports an I/O error if only the file
 * of its shared memory has no room.
 */
export const openFailureReason = (file: string, error: unknown, disk?: DiskProbe): string =>
  (sqliteCode(error) === IO_ERROR ? unwritableReason(file, disk) : undefined) ??
  sqliteReason(error) ??
  (error as Error).message;
