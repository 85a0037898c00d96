import { releaseBuffer } from './releaseBuffer.ts';

const LEAST_BYTES = 4_096;

/** The first bytes of a body that arrives in pieces. */
interface ByteCollector {
  /** Adds a copy of a piece, except a first one that is all. Returns false where some of it is beyond the limit. */
  add(piece: Buffer): boolean;
  /** Returns what was added, once. */
  take(): Buffer;
  /** Frees what was added. */
  release(): void;
}

/**
 * Collects up to `limit` bytes in one buffer that grows. A list of pieces would have an object for each
 * byte of a sender that sends them one by one, and would keep all pieces until the garbage collector
 * runs.
 */
export function createByteCollector(limit: number): ByteCollector {
  let buffer: Buffer = Buffer.alloc(0);
  let size = 0;

  function grow(bytes: number): void {
    const larger = Buffer.allocUnsafeSlow(bytes);
    buffer.copy(larger, 0, 0, size);
    releaseBuffer(buffer);
    buffer = larger;
  }

  return {
    add(piece) {
      const added = Math.min(piece.length, limit - size);
      if (size === 0 && piece.length === limit) buffer = piece;
      else {
        if (size + added > buffer.length)
          grow(Math.min(limit, Math.max(LEAST_BYTES, 2 * (size + added))));
        piece.copy(buffer, size, 0, added);
      }
      size += added;
      return added === piece.length;
    },
    take() {
      if (size < buffer.length) grow(size);
      const taken = buffer;
      buffer = Buffer.alloc(0);
      return taken;
    },
    release: () => releaseBuffer(buffer),
  };
}
