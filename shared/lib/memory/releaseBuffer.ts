import { KIB } from '../units.ts';

/** Smaller buffers may share their memory, and cost more to free than they hold. */
const LARGE_BYTES = 16 * KIB;

/**
 * Frees the memory of a large buffer at once: the garbage collector counts only its object, not its
 * bytes, and would keep many for a while. Small buffers are kept.
 */
export function releaseBuffer(bytes: Uint8Array): void {
  const { buffer } = bytes;
  if (bytes.length < LARGE_BYTES) return;
  if (buffer.byteLength === bytes.length && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
