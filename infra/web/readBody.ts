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

/** Decodes the stream. Only one coding is supported, so that none can hide another. */
function decoded(stream: Readable, encoding: string): Readable {
  const coding = encoding.trim().toLowerCase();
  if (coding === '' || coding === 'identity') return stream;
  const decoder = DECODERS[coding]?.();
  if (!decoder) {
    stream.destroy();
    throw webFailed('answers in an encoding that is not known');
  }
  // The reader of the decoder gets the error.
  return pipeline(stream, decoder, () => {});
}

/**
 * Reads up to `bytes` of a body after decoding, and discards the rest. It does not wait for a body of
 * 0 bytes. Throws `web_failed` for an unknown encoding.
 */
export async function readBody(
  stream: Readable,
  encoding: string,
  bytes: number,
): Promise<ReadBody> {
  // The reader gets errors from the iterator. After the last read they are irrelevant.
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
