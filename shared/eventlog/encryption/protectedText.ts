/**
 * Protected text: the log stores user and model text as a salted commitment and a ciphertext. The
 * commitment is sha256(salt ‖ UTF-8 text), and the event's hash covers it; the ciphertext holds
 * salt and text under AES-256-GCM, and no hash covers it. With text and salt the commitment can be
 * checked; without them it reveals nothing. Without the key the text is gone, and every chain
 * remains valid.
 */
import { releaseBuffer } from '../../lib/memory/releaseBuffer.ts';
import { createSecretKey, hash as digest, type KeyObject } from 'node:crypto';
import { pooledRandomBytes } from '../../lib/pooledRandomBytes.ts';
import { ADDED_BYTES, decrypt, encrypt } from './aesGcm.ts';

/** A text as stored. A copy of the log may omit the ciphertext. */
export interface ProtectedText {
  /** The commitment, in hex. */
  sha256: string;
  /** `<key id>.<base64url of IV ‖ ciphertext ‖ tag>`. */
  box?: string;
}

/** A text with the salt (base64url) that its commitment needs. */
export interface DisclosedText {
  sha256: string;
  salt: string;
  text: string;
}

/** A text whose key was destroyed. */
export interface ErasedText {
  sha256: string;
  erased: true;
}

/** The key of a stream's texts. */
export interface TextKey {
  /** 16 characters of base64url. */
  id: string;
  /**
   * 32 bytes in base64url: passing a string to another thread costs a tenth of passing a KeyObject.
   */
  secret: string;
}

/** The texts that an event's data only commits to. Can be sent to another thread. */
export interface TextsToEncrypt {
  texts: readonly DisclosedText[];
  key: TextKey;
}

const SALT_BYTES = 16;

const SALT = /^[\w-]{22}$/;
const SHA256_HEX = /^[0-9a-f]{64}$/;
const BOX = /^([\w-]{16})\.[\w-]+$/;

/** True for exactly the objects that replace texts in stored events. */
export function isProtectedText(value: unknown): value is ProtectedText {
  if (typeof value !== 'object' || value === null) return false;
  const { sha256, box, ...rest } = value as Partial<Record<string, unknown>>;
  return (
    typeof sha256 === 'string' &&
    SHA256_HEX.test(sha256) &&
    (box === undefined || (typeof box === 'string' && BOX.test(box))) &&
    Object.keys(rest).length === 0
  );
}

/** All members of a protected text, as stored or shown. */
const MEMBERS_OF_TEXTS = new Set(['sha256', 'box', 'salt', 'text', 'erased']);

/**
 * True for anything that a reader may take for a protected text, stored or shown. Other data must
 * not look like that.
 */
export const looksProtected = (value: object): boolean =>
  'sha256' in value &&
  typeof value.sha256 === 'string' &&
  SHA256_HEX.test(value.sha256) &&
  Object.keys(value).every((name) => MEMBERS_OF_TEXTS.has(name));

/** The id of the key that encrypted a text. */
export const keyIdOf = (box: string): string => box.slice(0, 16);

const commitmentOf = (salted: Uint8Array): string => digest('sha256', salted, 'hex');

/** Held for as long as the keys themselves. */
const keyObjects = new WeakMap<TextKey, KeyObject>();

/** Creating a cipher from raw bytes takes five times as long. */
function keyOf(key: TextKey): KeyObject {
  const cachedKey = keyObjects.get(key) ?? createSecretKey(key.secret, 'base64url');
  keyObjects.set(key, cachedKey);
  return cachedKey;
}

/** Commits to a text with a random salt. */
export function commitText(text: string): DisclosedText {
  const salted = Buffer.allocUnsafe(SALT_BYTES + Buffer.byteLength(text));
  pooledRandomBytes(SALT_BYTES).copy(salted);
  salted.write(text, SALT_BYTES);
  const salt = salted.toString('base64url', 0, SALT_BYTES);
  const sha256 = commitmentOf(salted);
  releaseBuffer(salted);
  return { sha256, salt, text };
}

/**
 * Returns a function that encrypts texts and salts with a random IV for one stream; the ciphertext
 * can't be decrypted in another stream.
 */
export function createTextEncrypter(
  textKey: TextKey,
  stream: string,
): (text: DisclosedText) => string {
  const key = keyOf(textKey);
  return ({ salt, text }) => {
    const salted = Buffer.allocUnsafe(SALT_BYTES + Buffer.byteLength(text));
    salted.write(salt, 'base64url');
    salted.write(text, SALT_BYTES);
    const encrypted = encrypt(salted, key, stream);
    const box = `${textKey.id}.${encrypted.toString('base64url')}`;
    releaseBuffer(salted);
    releaseBuffer(encrypted);
    return box;
  };
}

/** The characters of a text's ciphertext. */
export const ciphertextLength = (text: string): number =>
  17 + Math.ceil(((ADDED_BYTES + SALT_BYTES + Buffer.byteLength(text)) * 4) / 3);

/** Thrown when a ciphertext can't be decrypted, or its text does not match the commitment. */
export class InvalidCiphertext extends Error {}

/** Decrypts a text of a stream and checks its commitment. Throws InvalidCiphertext. */
export function openText(
  { box, sha256 }: Required<ProtectedText>,
  key: TextKey,
  stream: string,
): DisclosedText {
  const bytes = Buffer.from(box.slice(17), 'base64url');
  if (bytes.length < ADDED_BYTES + SALT_BYTES)
    throw new InvalidCiphertext('a ciphertext is too short');
  let salted: Buffer;
  try {
    salted = decrypt(bytes, keyOf(key), stream);
  } catch (error) {
    throw new InvalidCiphertext("a ciphertext can't be decrypted with its key in this stream", {
      cause: error,
    });
  }
  if (commitmentOf(salted) !== sha256)
    throw new InvalidCiphertext('a ciphertext holds another text');
  const salt = salted.toString('base64url', 0, SALT_BYTES);
  const text = salted.toString('utf8', SALT_BYTES);
  releaseBuffer(bytes);
  releaseBuffer(salted);
  // In the order of canonical JSON, in which a bundle writes it fastest.
  return { salt, sha256, text };
}

/**
 * True for a disclosed text that matches its commitment, and for anything that discloses no text.
 */
export function matchesCommitment({ sha256, salt, text }: Partial<DisclosedText>): boolean {
  if (salt === undefined && text === undefined) return true;
  if (typeof salt !== 'string' || typeof text !== 'string') return false;
  // With salts of other lengths several texts would match one commitment.
  if (!SALT.test(salt)) return false;
  return (
    commitmentOf(Buffer.concat([Buffer.from(salt, 'base64url'), Buffer.from(text)])) === sha256
  );
}

/**
 * Replaces each protected text, stored or shown, by its commitment: the form that the event's hash
 * covers. A disclosed text that does not match its commitment stays, so that the hash does not
 * match.
 */
export function toCommitments(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(toCommitments);
  if (looksProtected(value) && matchesCommitment(value))
    return { sha256: (value as ErasedText).sha256 };
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, toCommitments(member)]),
  );
}
