import { once } from 'node:events';
import { pipeline, type Readable, type Transform } from 'node:stream';
import { finished } from 'node:stream/promises';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import { KIB } from '../../shared/lib/units.ts';
import { webFailedError } from './failures.ts';

/** The most codings of one body: each hides the size of what the next one decodes. */
const CODINGS = 2;
/** A small body may be longer encoded than decoded. */
const OVERHEAD_BYTES = 64 * KIB;
/** The window of 8 MiB that RFC 8878 recommends; Node.js would allow 128 MiB. */
const ZSTD = { params: { [constants.ZSTD_d_windowLogMax]: 23 } };
/** The compression method in the first byte of the zlib format (RFC 1950). */
const [METHOD_BITS, DEFLATE] = [0x0f, 8];

/** Waits for the first data of a stream; undefined if it ends without any. */
async function firstChunkOf(stream: Readable): Promise<Buffer | undefined> {
  for (;;) {
    const chunk = stream.read() as Buffer | null;
    if (chunk !== null) return chunk;
    if (stream.readableEnded) return undefined;
    // A stream without data may end without becoming readable.
    await Promise.race([once(stream, 'readable'), finished(stream)]);
  }
}

/** Creates a decoder for data that begin with this chunk. */
type CreateDecoder = (first: Buffer) => Transform;

/** None is requested, but servers use these all the same. */
const DECODERS: Readonly<Record<string, CreateDecoder>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  // Some servers send raw deflate data without the zlib format, as which `deflate` is specified.
  deflate: (first) =>
    (first[0]! & METHOD_BITS) === DEFLATE ? createInflate() : createInflateRaw(),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(ZSTD),
};

/** Ends with `web_failed` after `most` bytes: data that decode to almost nothing take time. */
async function* limited(source: AsyncIterable<Buffer>, most: number): AsyncGenerator<Buffer, void> {
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (size > most) throw webFailedError('sends far more bytes than they decode to');
    yield chunk;
  }
}

/**
 * Decodes a body of which up to `bytes` are read: gzip, deflate, Brotli and Zstandard, the last coding
 * first. A decoder works only as far as its output is read. Throws `web_failed` for another coding, too
 * many of them, or, from the stream, far more encoded than decoded bytes.
 */
export async function decodeContent(
  stream: Readable,
  encoding: string,
  bytes: number,
): Promise<Readable> {
  const codings = encoding
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity');
  const decoders = codings.map((coding) =>
    Object.hasOwn(DECODERS, coding) ? DECODERS[coding] : undefined,
  );
  if (codings.length > CODINGS || decoders.includes(undefined)) {
    stream.destroy();
    throw webFailedError('answers in an encoding that is not known');
  }
  let decoded = stream;
  for (const createDecoder of decoders.toReversed()) {
    const first = await firstChunkOf(decoded);
    // Servers name a coding for an empty body, too, which no decoder takes.
    if (first === undefined) return decoded;
    decoded.unshift(first);
    const decoder = createDecoder!(first);
    const most = bytes + OVERHEAD_BYTES;
    // The reader of the decoder gets the error.
    decoded = pipeline(
      decoded,
      (source: AsyncIterable<Buffer>) => limited(source, most),
      decoder,
      () => {},
    );
  }
  return decoded;
}
