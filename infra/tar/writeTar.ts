import type { FileHandle } from 'node:fs/promises';
import { addAbortSignal, Readable } from 'node:stream';
import { writeCompleteFile } from '../lib/completeFile.ts';
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
  target: FileHandle,
  { small, last, modified, signal }: TarContent,
): Promise<void> {
  const before = Buffer.concat([...small].map(([name, text]) => fileOf(name, text, modified)));
  await target.writeFile(Buffer.concat([before, Buffer.alloc(BLOCK)]));
  const size = await writePieces(target, last.pieces, signal);
  await target.writeFile(Buffer.alloc(paddingOf(size) + 2 * BLOCK));
  const header = headerOf(last.name, timesOf(size, modified));
  await target.write(header, 0, BLOCK, before.length);
}

/**
 * Writes an archive as a complete file (writeCompleteFile). Memory use is independent of the size.
 * Throws the reason of the signal.
 */
export async function writeTar(file: string, content: TarContent): Promise<void> {
  try {
    await writeCompleteFile(file, content, (target) => writeArchive(target, content));
  } catch (error) {
    content.signal.throwIfAborted();
    throw error;
  }
}
