import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import { KIB } from '../../../shared/lib/units.ts';

/** Bytes of a connection that are no part of a header or a body: far more than servers send. */
const MAX_UNCOUNTED_BYTES = 256 * KIB;
/** The framing of a chunk that is not counted: its size in hexadecimal, and short extensions. */
const FRAMING_BYTES = 64;

class TooManyUncountedBytes extends Error {
  readonly code = 'TOO_MANY_UNCOUNTED_BYTES';
}

/** Subtracts bytes that the client has delivered from those that it has read. */
type Count = (delivered: number) => void;

/** Counts for the connection that undici reads: it parses what it has read in the same step. */
let countDelivered: Count | undefined;

function watch(socket: Socket): void {
  let uncounted = 0;
  const count: Count = (delivered) => (uncounted = Math.max(0, uncounted - delivered));
  const stopCounting = (): void => {
    if (countDelivered === count) countDelivered = undefined;
  };
  const { read, unshift } = socket;
  socket.read = (size) => {
    const chunk = read.call(socket, size) as Buffer | null;
    if (chunk === null) return chunk;
    uncounted += chunk.length;
    if (uncounted > MAX_UNCOUNTED_BYTES + chunk.length) socket.destroy(new TooManyUncountedBytes());
    countDelivered = count;
    queueMicrotask(stopCounting);
    return chunk;
  };
  // undici puts unparsed bytes back while the reader is slow.
  socket.unshift = (chunk: Buffer, encoding) => {
    count(chunk.length);
    unshift.call(socket, chunk, encoding);
  };
}

/**
 * One buffer for all reads of a thread, each of which is copied at once. Node otherwise takes 64 KiB per
 * read and gives most of it back, which splits the memory of malloc into pieces that the system does not
 * get back: 40 MB after minutes of load.
 */
const READING = {
  onread: {
    buffer: Buffer.allocUnsafeSlow(64 * KIB),
    callback(this: Socket, bytes: number, buffer: Uint8Array): boolean {
      return this.push(Buffer.from(buffer.subarray(0, bytes)));
    },
  },
};

/**
 * A connector that closes connections that carry too much besides headers and bodies. undici's parser
 * skips line ends before a response, extensions of chunks, and zeros before their sizes without limit, so
 * that a server could keep the event loop parsing until the deadline. The dispatcher must be composed with
 * limitInformationalResponses, which counts what is delivered. Padding and other frames of HTTP/2 would
 * not be counted: connections are HTTP/1.1.
 */
export function buildLimitedConnector(
  build: typeof buildConnector,
  options: buildConnector.BuildOptions,
): buildConnector.connector {
  const connect = build({ ...READING, ...options, allowH2: false });
  return (target, callback) =>
    connect(target, (...connected) => {
      const [, socket] = connected;
      if (socket) watch(socket);
      callback(...connected);
    });
}

/** Counts a piece of a body that the client delivers. */
export const countDeliveredPiece = (bytes: number): void => countDelivered?.(bytes + FRAMING_BYTES);

/** Counts the headers or the end of a response, each of which undici limits. */
export const countDeliveredHeaders = (): void => countDelivered?.(Infinity);
