import { randomFillSync } from 'node:crypto';

/** Drawn at once: a call for few bytes costs as much as what they are for. */
const POOL_BYTES = 28 * 256;
const pool = Buffer.alloc(POOL_BYTES);
let drawn = POOL_BYTES;

/** Random bytes, for ids, salts and IVs; valid until the next call only. */
export function pooledRandomBytes(bytes: number): Buffer {
  if (drawn + bytes > POOL_BYTES) {
    randomFillSync(pool);
    drawn = 0;
  }
  drawn += bytes;
  return pool.subarray(drawn - bytes, drawn);
}
