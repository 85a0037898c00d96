/** AES-256-GCM (NIST SP 800-38D) as all that is closed here is written: IV ‖ ciphertext ‖ tag. */
import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto';
import { pooledRandomBytes } from '../../lib/pooledRandomBytes.ts';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
const TAG = { authTagLength: TAG_BYTES };

/** Bytes that are added to what is encrypted. */
export const ADDED_BYTES = IV_BYTES + TAG_BYTES;

/** Encrypts, with an IV of its own; `place` is what it opens with again, and nowhere else. */
export function encrypt(bytes: Uint8Array, key: KeyObject, place: string): Buffer {
  const iv = pooledRandomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv, TAG);
  cipher.setAAD(Buffer.from(place));
  const closed = Buffer.allocUnsafe(bytes.length + ADDED_BYTES);
  iv.copy(closed);
  cipher.update(bytes).copy(closed, IV_BYTES);
  cipher.final();
  cipher.getAuthTag().copy(closed, IV_BYTES + bytes.length);
  return closed;
}

/** Errors: a plain Error for what was not encrypted with this key for this place. */
export function decrypt(closed: Uint8Array, key: KeyObject, place: string): Buffer {
  if (closed.length < ADDED_BYTES) throw new RangeError('it is too short');
  const decipher = createDecipheriv(CIPHER, key, closed.subarray(0, IV_BYTES), TAG);
  decipher.setAAD(Buffer.from(place));
  decipher.setAuthTag(closed.subarray(-TAG_BYTES));
  const bytes = decipher.update(closed.subarray(IV_BYTES, -TAG_BYTES));
  // A stream cipher holds nothing back: this only looks at the tag.
  decipher.final();
  return bytes;
}
