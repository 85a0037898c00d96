import { pipeline, type Readable, type Transform } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';
import { webFailed } from './failures.ts';

/** As much of a body as was read, and whether that is all. */
export interface ReadBody {
  body: Buffer;
  truncated: boolean;
}

/** None is asked for: these are what servers use all the same, and need little memory. */
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  deflate: () => createInflate(),
};

/** The stream as its sender meant it. Only one coding is undone, so that none can hide another. */
function decoded(stream: Readable, encoding: string): Readable {
  const coding = encoding.trim().toLowerCase();
  if (coding === '' || coding === 'identity') return stream;
  const decoder = DECODERS[coding]?.();
  if (!decoder) {
    stream.destroy();
    throw webFailed('answers in an encoding that is not known');
  }
  // The reader of what comes out hears of the error.
  return pipeline(stream, decoder, () => {});
}

/**
 * Reads up to `bytes` of a body, counted as they are unpacked, and lets go of the rest; of
 * 0 bytes it waits for none.
 * Errors: `web_failed` for an unknown encoding; those of the stream.
 */
export async function readBody(
  stream: Readable,
  encoding: string,
  bytes: number,
): Promise<ReadBody> {
  // Whoever reads it hears of errors; of one that nobody reads on they are none.
  stream.on('error', () => {});
  if (bytes === 0) {
    stream.destroy();
    return { body: Buffer.alloc(0), truncated: true };
  }
  let size = 0;
  // One buffer that grows, and no list of chunks: a server that sends a byte at a time would make
  // an object of each.
  let body = Buffer.alloc(0);
  for await (const piece of decoded(stream, encoding)) {
    const chunk = piece as Buffer;
    const taken = Math.min(chunk.length, bytes - size);
    if (size + taken > body.length) {
      const larger = Buffer.allocUnsafe(Math.min(bytes, Math.max(4_096, 2 * (size + taken))));
      body.copy(larger, 0, 0, size);
      body = larger;
    }
    chunk.copy(body, size, 0, taken);
    size += taken;
    if (taken < chunk.length) return { body: body.subarray(0, size), truncated: true };
  }
  return { body: body.subarray(0, size), truncated: false };
}
