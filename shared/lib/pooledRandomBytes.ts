import { randomFillSync } from 'node:crypto';

/** Drawn at once: a system call per id would cost as much as creating the id. */
const POOL_BYTES = 28 * 256;
const pool = Buffer.alloc(POOL_BYTES);
let consumed = POOL_BYTES;

/** Returns random bytes for ids, salts and IVs, valid until the next call only. */
export function pooledRandomBytes(bytes: number): Buffer {
  if (consumed + bytes > POOL_BYTES) {
    randomFillSync(pool);
    consumed = 0;
  }
  consumed += bytes;
  return pool.subarray(consumed - bytes, consumed);
}
