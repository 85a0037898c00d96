import { randomUUID } from 'node:crypto';
import { access, link, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { addAbortSignal, Readable } from 'node:stream';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { toFileError } from './fileErrors.ts';
import { BLOCK, headerOf, paddingOf, timesOf } from './header.ts';

/** The content of an archive: small files, and a last file of any length. */
export interface TarContent {
  small: ReadonlyMap<string, string>;
  last: { name: string; pieces: AsyncIterable<string> };
  /** The time of all files. The same content produces the same bytes. */
  modified: Date;
  /** True to replace a file that exists already. */
  replace?: boolean | undefined;
  /** Cancels the writing and removes the partial file. */
  signal: AbortSignal;
}

/** Characters that are written together. */
const CHUNK = 65_536;

/** Resolves with the number of bytes written. */
async function writePieces(
  target: FileHandle,
  pieces: AsyncIterable<string>,
  signal: AbortSignal,
): Promise<number> {
  let size = 0;
  let text = '';
  const put = async (): Promise<void> => {
    const bytes = Buffer.from(text);
    await target.writeFile(bytes);
    size += bytes.length;
    text = '';
  };
  for await (const piece of addAbortSignal(signal, Readable.from(pieces))) {
    text += piece;
    if (text.length >= CHUNK) await put();
  }
  await put();
  return size;
}

function fileOf(name: string, text: string, modified: Date): Buffer {
  const bytes = Buffer.from(text);
  const zeros = Buffer.alloc(paddingOf(bytes.length));
  return Buffer.concat([headerOf(name, timesOf(bytes.length, modified)), bytes, zeros]);
}

/** Writes the header of the last file at the end, because it holds the file's length. */
async function writeArchive(
  file: string,
  { small, last, modified, signal }: TarContent,
): Promise<void> {
  await using target = await open(file, 'wx', 0o600);
  const before = Buffer.concat([...small].map(([name, text]) => fileOf(name, text, modified)));
  await target.writeFile(Buffer.concat([before, Buffer.alloc(BLOCK)]));
  const size = await writePieces(target, last.pieces, signal);
  await target.writeFile(Buffer.alloc(paddingOf(size) + 2 * BLOCK));
  const header = headerOf(last.name, timesOf(size, modified));
  await target.write(header, 0, BLOCK, before.length);
  await target.sync();
}

const existsError = (file: string, cause?: unknown): TurnlogError =>
  new TurnlogError(
    'configuration_invalid',
    `${file} exists already, or another command has just written it: it was left as it is.`,
    { cause },
  );

/** Errors of file systems without hard links. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/**
 * Names a complete file, unless another writer has taken the name. On a file system without hard links
 * an empty file takes it first, and a crash may leave that.
 */
async function publish(partial: string, file: string): Promise<void> {
  try {
    await link(partial, file).catch(async (error: NodeJS.ErrnoException) => {
      if (!NO_LINKS.has(error.code ?? '')) throw error;
      await using _created = await open(file, 'wx', 0o600);
      await rename(partial, file);
    });
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? existsError(file, error) : error;
  }
}

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

/**
 * Writes an archive to a separate partial file, syncs it and then names it, so that the file is never
 * a mix of two writers, nor incomplete after a crash. Without `replace`, throws
 * `configuration_invalid` for a file that exists before or after the writing. Memory use is
 * independent of the size. A failure removes the partial file.
 */
export async function writeTar(file: string, content: TarContent): Promise<void> {
  const partial = `${file}.${randomUUID()}.partial`;
  const { replace = false } = content;
  if (!replace && (await exists(file))) throw existsError(file);
  try {
    await writeArchive(partial, content);
    await (replace ? rename(partial, file) : publish(partial, file));
    await using folder = await open(dirname(file));
    await folder.sync();
  } catch (error) {
    content.signal.throwIfAborted();
    throw toFileError(file, error) ?? error;
  } finally {
    await rm(partial, { force: true });
  }
}
