/**
 * Protected text: what persons write and models answer stands in the log as a salted commitment and
 * a box. The commitment is sha256(salt ‖ UTF-8 text), and the hash of the event covers it; the box
 * holds salt and text under AES-256-GCM, and no hash covers it. Who is given text and salt can check
 * them; who is not learns nothing; without the key the text is gone and every chain still holds.
 */
import { createSecretKey, hash as digest, type KeyObject } from 'node:crypto';
import { pooledRandomBytes } from '../../lib/pooledRandomBytes.ts';
import { ADDED_BYTES, decrypt, encrypt } from './aesGcm.ts';

/** A text as it is stored. A copy of the log may leave the box out. */
export interface ProtectedText {
  /** The commitment, in hex. */
  sha256: string;
  /** `<key id>.<base64url of IV ‖ ciphertext ‖ tag>`. */
  box?: string;
}

/** A text with what it takes to check its commitment; the salt in base64url. */
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
  /** 32 bytes in base64url: a string is handed to another thread at a tenth of a KeyObject's cost. */
  secret: string;
}

/** The texts of an event whose data holds only what commits to them. Threads can hand it on. */
export interface TextsToClose {
  texts: readonly DisclosedText[];
  key: TextKey;
}

const SALT_BYTES = 16;

const SALT = /^[\w-]{22}$/;
const SHAPE = /^[0-9a-f]{64}$/;
const BOX = /^([\w-]{16})\.[\w-]+$/;

/** True for what stands in a stored event in place of a text, and for nothing else. */
export function isProtectedText(value: unknown): value is ProtectedText {
  if (typeof value !== 'object' || value === null) return false;
  const { sha256, box, ...rest } = value as Partial<Record<string, unknown>>;
  return (
    typeof sha256 === 'string' &&
    SHAPE.test(sha256) &&
    (box === undefined || (typeof box === 'string' && BOX.test(box))) &&
    Object.keys(rest).length === 0
  );
}

/** What stands of a text beside its commitment, as it is stored or shown. */
const BESIDE = new Set(['sha256', 'box', 'salt', 'text', 'erased']);

/**
 * True for whatever a reader may take for a protected text, stored or shown; data that is none must
 * not look so.
 */
export const looksProtected = (value: object): boolean =>
  'sha256' in value &&
  typeof value.sha256 === 'string' &&
  SHAPE.test(value.sha256) &&
  Object.keys(value).every((name) => BESIDE.has(name));

/** The id of the key that closed a box. */
export const keyIdOf = (box: string): string => box.slice(0, 16);

const commitmentOf = (salted: Uint8Array): string => digest('sha256', salted, 'hex');

/** With raw bytes a cipher takes five times as long to make. */
const keyOf = (secret: string): KeyObject => createSecretKey(secret, 'base64url');

/** Commits to a text, with a salt of its own. */
export function commitText(text: string): DisclosedText {
  const salted = Buffer.allocUnsafe(SALT_BYTES + Buffer.byteLength(text));
  pooledRandomBytes(SALT_BYTES).copy(salted);
  salted.write(text, SALT_BYTES);
  const salt = salted.toString('base64url', 0, SALT_BYTES);
  return { sha256: commitmentOf(salted), salt, text };
}

/**
 * What closes texts with their salts in boxes, each with an IV of its own, for one stream: in another
 * one they do not open, whoever puts them there.
 */
export function createTextCloser(
  { id, secret }: TextKey,
  stream: string,
): (text: DisclosedText) => string {
  const key = keyOf(secret);
  return ({ salt, text }) => {
    const salted = Buffer.allocUnsafe(SALT_BYTES + Buffer.byteLength(text));
    salted.write(salt, 'base64url');
    salted.write(text, SALT_BYTES);
    return `${id}.${encrypt(salted, key, stream).toString('base64url')}`;
  };
}

/** Characters of the box that a text is closed in. */
export const ciphertextLength = (text: string): number =>
  17 + Math.ceil(((ADDED_BYTES + SALT_BYTES + Buffer.byteLength(text)) * 4) / 3);

/** Thrown where a box does not open with its key, or holds another text than was committed to. */
export class InvalidCiphertext extends Error {}

/** Opens a box that stands in a stream, and checks the commitment. Errors: BoxBroken. */
export function openText(
  { box, sha256 }: Required<ProtectedText>,
  { secret }: TextKey,
  stream: string,
): DisclosedText {
  const bytes = Buffer.from(box.slice(17), 'base64url');
  if (bytes.length < ADDED_BYTES + SALT_BYTES) throw new InvalidCiphertext('a box is too short');
  let salted: Buffer;
  try {
    salted = decrypt(bytes, keyOf(secret), stream);
  } catch (error) {
    throw new InvalidCiphertext('a box does not open with its key in this stream', {
      cause: error,
    });
  }
  if (commitmentOf(salted) !== sha256) throw new InvalidCiphertext('a box holds another text');
  return {
    sha256,
    salt: salted.toString('base64url', 0, SALT_BYTES),
    text: salted.toString('utf8', SALT_BYTES),
  };
}

/** True for a text that was committed to as its hash says; anything that does not disclose one fits. */
export function matchesCommitment({ sha256, salt, text }: Partial<DisclosedText>): boolean {
  if (salt === undefined && text === undefined) return true;
  if (typeof salt !== 'string' || typeof text !== 'string') return false;
  // With salts of other lengths one commitment would fit several texts.
  if (!SALT.test(salt)) return false;
  return (
    commitmentOf(Buffer.concat([Buffer.from(salt, 'base64url'), Buffer.from(text)])) === sha256
  );
}

/**
 * A value in which each protected text, stored or shown, is its commitment alone: what the hash of
 * an event covers. A disclosed text that is not what was committed to stays, and fits no hash.
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
