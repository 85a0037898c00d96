/** AES-256-GCM (NIST SP 800-38D). The output is IV ‖ ciphertext ‖ tag. */
import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto';
import { releaseBuffer } from '../../lib/memory/releaseBuffer.ts';
import { pooledRandomBytes } from '../../lib/pooledRandomBytes.ts';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
const TAG = { authTagLength: TAG_BYTES };

/** The bytes that encryption adds. */
export const ADDED_BYTES = IV_BYTES + TAG_BYTES;

/** Encrypts with a random IV; `context` is authenticated and must be the same for decryption. */
export function encrypt(bytes: Uint8Array, key: KeyObject, context: string): Buffer {
  const iv = pooledRandomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv, TAG);
  cipher.setAAD(Buffer.from(context));
  const encrypted = Buffer.allocUnsafe(bytes.length + ADDED_BYTES);
  iv.copy(encrypted);
  const ciphertext = cipher.update(bytes);
  ciphertext.copy(encrypted, IV_BYTES);
  releaseBuffer(ciphertext);
  cipher.final();
  cipher.getAuthTag().copy(encrypted, IV_BYTES + bytes.length);
  return encrypted;
}

/** Throws a plain Error when the key or the context is wrong, or the bytes were changed. */
export function decrypt(encrypted: Uint8Array, key: KeyObject, context: string): Buffer {
  if (encrypted.length < ADDED_BYTES) throw new RangeError('it is too short');
  const decipher = createDecipheriv(CIPHER, key, encrypted.subarray(0, IV_BYTES), TAG);
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(encrypted.subarray(-TAG_BYTES));
  const bytes = decipher.update(encrypted.subarray(IV_BYTES, -TAG_BYTES));
  // GCM holds no bytes back: final() only checks the tag.
  decipher.final();
  return bytes;
}
