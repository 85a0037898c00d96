/** Keys of signed notes: signing, verification, and the vkey encoding. */
import {
  createPublicKey,
  hash as digest,
  sign as signBytes,
  verify as verifyBytes,
  type KeyObject,
} from 'node:crypto';
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { decodeBase64 } from './base64.ts';

/** The supported signature types of C2SP signed-note. */
export const ED25519 = 0x01;
export const COSIGNATURE = 0x04;

const KEY_BYTES = 32;
/** The bytes that precede an Ed25519 key in SPKI (RFC 8410). */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** A public key with a name. Name and id together identify it. */
export interface NoteKey {
  name: string;
  /** 8 hex digits. */
  id: string;
  /** ED25519 or COSIGNATURE. */
  type: number;
  publicKey: KeyObject;
}

/** Signs notes under a name. */
export interface NoteSigner {
  key: NoteKey;
  sign(message: Uint8Array): Buffer;
}

/** True for a valid key name: not empty, no space, no `+`, no control character. */
export const isKeyName = (name: string): boolean =>
  // eslint-disable-next-line no-control-regex
  /^[^\p{White_Space}+\u0000-\u001f]+$/u.test(name);

const rawOf = (publicKey: KeyObject): Buffer =>
  publicKey.export({ type: 'spki', format: 'der' }).subarray(SPKI_PREFIX.length);

function idOf(name: string, type: number, raw: Uint8Array): string {
  const named = Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(type), raw]);
  return digest('sha256', named, 'hex').slice(0, 8);
}

function keyOf(name: string, type: number, publicKey: KeyObject): NoteKey {
  if (!isKeyName(name))
    throw proofInvalidError('The name of a key is empty, or has a space or a plus.');
  if (publicKey.asymmetricKeyType !== 'ed25519')
    throw proofInvalidError('A key of signed notes is an Ed25519 key.');
  return { name, type, publicKey, id: idOf(name, type, rawOf(publicKey)) };
}

/** Creates a signer. Throws `proof_invalid` for an invalid name or a key other than Ed25519. */
export const noteSigner = (name: string, privateKey: KeyObject, type = ED25519): NoteSigner => ({
  key: keyOf(name, type, createPublicKey(privateKey)),
  sign: (message) => signBytes(null, message, privateKey),
});

/** True when `signature` is a valid Ed25519 signature of the message by this key. */
export const isSignedBy = (
  { publicKey }: NoteKey,
  message: Uint8Array,
  signature: Uint8Array,
): boolean => verifyBytes(null, message, publicKey, signature);

/** The public key alone, in base64, whatever its name. */
export const publicKeyOf = ({ publicKey }: NoteKey): string => rawOf(publicKey).toString('base64');

/** `<name>+<id>+<base64 of type and key>`. */
export const formatVkey = ({ name, id, type, publicKey }: NoteKey): string =>
  `${name}+${id}+${Buffer.concat([Buffer.of(type), rawOf(publicKey)]).toString('base64')}`;

/**
 * Parses a vkey. Throws `proof_invalid` when the text is malformed, the id does not match the key,
 * or the signature type is unsupported.
 */
export function parseVkey(text: string): NoteKey {
  const [, name, id, encoded] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? [];
  const bytes = encoded === undefined ? undefined : decodeBase64(encoded);
  if (name === undefined || !bytes)
    throw proofInvalidError('A vkey reads <name>+<8 hex digits>+<base64>.');
  const type = bytes[0];
  if (type !== ED25519 && type !== COSIGNATURE)
    throw proofInvalidError(`The vkey of ${name} has a type that is not understood.`);
  if (bytes.length !== 1 + KEY_BYTES)
    throw proofInvalidError(`The vkey of ${name} does not hold an Ed25519 key.`);
  const der = Buffer.concat([SPKI_PREFIX, bytes.subarray(1)]);
  const key = keyOf(name, type, createPublicKey({ key: der, type: 'spki', format: 'der' }));
  if (key.id !== id) throw proofInvalidError(`The vkey of ${name} has the id of another key.`);
  return key;
}
