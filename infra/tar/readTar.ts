import { createReadStream } from 'node:fs';
import { proofInvalidError } from '../../shared/lib/errors/turnlogError.ts';
import type { BundleFile } from '../../shared/transparency/proof/bundleFormat.ts';
import { asSentence } from './fileErrors.ts';
import { BLOCK, headerOf, restOfBlock, TIMES } from './header.ts';

/** Errors: `configuration_invalid` where the file can't be read. */
async function* chunksOf(file: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(file) as AsyncIterable<Buffer>;
  } catch (error) {
    throw asSentence(file, error) ?? error;
  }
}

interface Source {
  /** So many bytes, as they come. Errors: `proof_invalid` where there are less. */
  take: (bytes: number) => AsyncGenerator<Buffer>;
  isAtEnd: () => Promise<boolean>;
}

function sourceOf(file: string, chunks: AsyncIterator<Buffer>): Source {
  let rest: Buffer = Buffer.alloc(0);
  async function* take(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0;) {
      if (rest.length === 0) {
        const next = await chunks.next();
        if (next.done)
          throw proofInvalidError(`${file} is no whole tar archive: it ends too early.`);
        rest = next.value;
      }
      const piece = rest.subarray(0, left);
      rest = rest.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }
  const isAtEnd = async () => rest.length === 0 && (await chunks.next()).done === true;
  return { take, isAtEnd };
}

/**
 * The files of a tar archive, in its order; each must be read before the next one is asked for. No
 * more than a chunk of it is held, and names are never used as paths. What tar readers understand in
 * several ways, or pass over, is refused: docs/proof.md has the form. Errors, those of reading a
 * file's content too: `proof_invalid`, `configuration_invalid` where it can't be read.
 */
export async function* readTar(file: string): AsyncGenerator<BundleFile> {
  const chunks = chunksOf(file);
  const { take, isAtEnd } = sourceOf(file, chunks);
  const whole = async (bytes: number): Promise<Buffer> => {
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
      const header = await whole(BLOCK);
      if (header[0] === 0) {
        requireZeros(header);
        break;
      }
      const [name = ''] = header.toString('latin1', 0, 100).split('\0');
      const times = header.toString('latin1', TIMES.from, TIMES.to);
      const isFile = TIMES.form.test(times) && headerOf(name, times).equals(header);
      const bytes = isFile ? Number.parseInt(times, 8) : 0;
      yield { name, isFile, bytes, content: take(bytes) };
      requireZeros(await whole(restOfBlock(bytes)));
    }
    requireZeros(await whole(BLOCK));
    if (!(await isAtEnd())) throw proofInvalidError(`${file} goes on after its end.`);
  } finally {
    await chunks.return(undefined);
  }
}
