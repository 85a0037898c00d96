import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { addAbortSignal, Readable } from 'node:stream';
import { asSentence } from './fileErrors.ts';
import { BLOCK, headerOf, restOfBlock, timesOf } from './header.ts';

/** What an archive is made of: small files, and a last one that may be of any length. */
export interface TarContent {
  small: ReadonlyMap<string, string>;
  last: { name: string; pieces: AsyncIterable<string> };
  /** Of all files: the same content makes the same bytes. */
  modified: Date;
  /** Ends the writing; nothing stays then. */
  signal: AbortSignal;
}

/** Characters that are written together. */
const CHUNK = 65_536;

/** Resolves with the bytes that it wrote. */
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
  const zeros = Buffer.alloc(restOfBlock(bytes.length));
  return Buffer.concat([headerOf(name, timesOf(bytes.length, modified)), bytes, zeros]);
}

/** The header of the last file says how long it is, which only the end of the pieces tells: it comes last. */
async function writeArchive(
  file: string,
  { small, last, modified, signal }: TarContent,
): Promise<void> {
  await using target = await open(file, 'w', 0o600);
  const before = Buffer.concat([...small].map(([name, text]) => fileOf(name, text, modified)));
  await target.writeFile(Buffer.concat([before, Buffer.alloc(BLOCK)]));
  const size = await writePieces(target, last.pieces, signal);
  await target.writeFile(Buffer.alloc(restOfBlock(size) + 2 * BLOCK));
  const header = headerOf(last.name, timesOf(size, modified));
  await target.write(header, 0, BLOCK, before.length);
  await target.sync();
}

/**
 * Writes an archive beside its place, and puts it there when it is whole and on the disk: what is
 * there already is replaced. Memory does not grow with it, and nothing half stays. Errors:
 * `configuration_invalid` where it can't be written, those of the pieces, the signal's reason.
 */
export async function writeTar(file: string, content: TarContent): Promise<void> {
  const partial = `${file}.partial`;
  try {
    await writeArchive(partial, content);
    await rename(partial, file);
    await using folder = await open(dirname(file));
    await folder.sync();
  } catch (error) {
    content.signal.throwIfAborted();
    throw asSentence(file, error) ?? error;
  } finally {
    await rm(partial, { force: true });
  }
}
