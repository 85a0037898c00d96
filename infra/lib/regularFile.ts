import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  type Stats,
} from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { constants as osConstants } from 'node:os';
import { MIB } from '../../shared/lib/units.ts';

/** An error like those of the file system, for a FIFO, a socket, a device or a folder. */
class NotARegularFile extends Error {
  readonly code = 'EINVAL';
  readonly errno = -osConstants.errno.EINVAL;

  constructor(path: string) {
    super(`${path} is not a regular file`);
  }
}

/** Without it, opening a FIFO waits for its other end, which no signal ends. Absent on Windows. */
const NONBLOCK = constants.O_NONBLOCK ?? 0;

const WORLD_WRITABLE = 0o002;

/** More than any list of models, tools or witnesses has. */
const OPTION_FILE_BYTES = 8 * MIB;

/** Opens a regular file; rejects for anything else. `flags` are those of open(2). */
export async function openRegularFile(
  path: string,
  flags: number = constants.O_RDONLY,
  mode?: number,
): Promise<FileHandle> {
  const handle = await open(path, flags | NONBLOCK, mode);
  try {
    if ((await handle.stat()).isFile()) return handle;
    throw new NotARegularFile(path);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Reads a regular file; rejects for anything else. */
export async function readRegularFile(path: string): Promise<Buffer> {
  await using handle = await openRegularFile(path);
  return await handle.readFile();
}

/**
 * Reads a file that an option names. Rejects with an error without `code`, whose message completes
 * "can't be read", for one that every user may change, or of more than 8 MiB.
 */
export async function readOptionFile(path: string): Promise<string> {
  await using handle = await openRegularFile(path);
  const { mode, size } = await handle.stat();
  if ((mode & WORLD_WRITABLE) !== 0)
    throw new Error(`every user of this machine may change it; chmod o-w ${path}`);
  if (size > OPTION_FILE_BYTES)
    throw new Error(`it has ${size} bytes, and at most ${OPTION_FILE_BYTES} are allowed`);
  return await handle.readFile('utf8');
}

/** Opens a regular file and reads it at once; throws for anything else. */
function readAtOnce<Read>(path: string, read: (descriptor: number, stats: Stats) => Read): Read {
  const descriptor = openSync(path, constants.O_RDONLY | NONBLOCK);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw new NotARegularFile(path);
    return read(descriptor, stats);
  } finally {
    closeSync(descriptor);
  }
}

/** The same as readRegularFile, at once. `check` may throw for a mode or size that is not accepted. */
export const readRegularFileSync = (
  path: string,
  check: (file: { mode: number; size: number }) => void = () => undefined,
): Buffer =>
  readAtOnce(path, (descriptor, stats) => {
    check(stats);
    return readFileSync(descriptor);
  });

/** The bytes of a regular file from an offset on: as many as `length`, fewer at its end. */
export const readRangeSync = (path: string, from: number, length: number): Buffer =>
  readAtOnce(path, (descriptor) => {
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(descriptor, bytes, 0, length, from));
  });
