import { createReadStream } from 'node:fs';
import { proofInvalidError } from '../../shared/lib/errors/turnlogError.ts';
import { toFileError } from '../lib/completeFile.ts';
import type { BundleFile } from '../../shared/transparency/proof/bundleFormat.ts';
import { BLOCK, headerOf, paddingOf, TIMES } from './header.ts';

async function* chunksOf(file: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(file) as AsyncIterable<Buffer>;
  } catch (error) {
    throw toFileError(file, error) ?? error;
  }
}

interface Source {
  /** Yields the next bytes in chunks. Throws `proof_invalid` where the archive ends too early. */
  take: (bytes: number) => AsyncGenerator<Buffer>;
  isAtEnd: () => Promise<boolean>;
}

function sourceOf(file: string, chunks: AsyncIterator<Buffer>): Source {
  let unread: Buffer = Buffer.alloc(0);
  async function* take(bytes: number): AsyncGenerator<Buffer> {
    for (let remaining = bytes; remaining > 0;) {
      if (unread.length === 0) {
        const next = await chunks.next();
        if (next.done)
          throw proofInvalidError(`${file} is no whole tar archive: it ends too early.`);
        unread = next.value;
      }
      const piece = unread.subarray(0, remaining);
      unread = unread.subarray(piece.length);
      remaining -= piece.length;
      yield piece;
    }
  }
  const isAtEnd = async () => unread.length === 0 && (await chunks.next()).done === true;
  return { take, isAtEnd };
}

/**
 * Yields the files of a tar archive in order. Read the content of each before the next one. Memory is
 * bounded by one chunk, and names are never used as paths. Only the canonical form of docs/proof.md
 * is accepted, because tar readers interpret other forms differently or skip them.
 */
export async function* readTar(file: string): AsyncGenerator<BundleFile> {
  const chunks = chunksOf(file);
  const { take, isAtEnd } = sourceOf(file, chunks);
  const readBytes = async (bytes: number): Promise<Buffer> => {
    const pieces: Buffer[] = [];
    for await (const piece of take(bytes)) pieces.push(piece);
    return Buffer.concat(pieces);
  };
  const requireZeros = (bytes: Buffer): void => {
    if (bytes.some((byte) => byte !== 0))
      throw proofInvalidError(`${file} has something between its files, or after them.`);
  };
  try {
    for (;;) {
      const header = await readBytes(BLOCK);
      if (header[0] === 0) {
        requireZeros(header);
        break;
      }
      const [name = ''] = header.toString('latin1', 0, 100).split('\0');
      const times = header.toString('latin1', TIMES.from, TIMES.to);
      const isFile = TIMES.form.test(times) && headerOf(name, times).equals(header);
      const bytes = isFile ? Number.parseInt(times, 8) : 0;
      yield { name, isFile, bytes, content: take(bytes) };
      requireZeros(await readBytes(paddingOf(bytes)));
    }
    requireZeros(await readBytes(BLOCK));
    if (!(await isAtEnd())) throw proofInvalidError(`${file} goes on after its end.`);
  } finally {
    await chunks.return(undefined);
  }
}
