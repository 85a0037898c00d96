/** C2SP signed-note: a text, an empty line, and signature lines. */
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { decodeBase64 } from './base64.ts';
import { ED25519, isKeyName, isSignedBy, type NoteKey, type NoteSigner } from './noteKeys.ts';

const ID_BYTES = 4;

/** A signature line of a note. */
export interface NoteSignature {
  name: string;
  /** 8 hex digits. */
  id: string;
  /** The bytes after the id. */
  signature: Buffer;
}

/** A parsed note with unverified signatures. */
export interface Note {
  /** Includes the final newline. */
  text: string;
  signatures: readonly NoteSignature[];
}

/** Formats a signature line, including its newline. */
export const signatureLine = ({ name, id, signature }: NoteSignature): string =>
  `— ${name} ${Buffer.concat([Buffer.from(id, 'hex'), signature]).toString('base64')}\n`;

/** Parses a signature line without its newline. Throws `proof_invalid`. */
export function parseSignatureLine(line: string): NoteSignature {
  const [, name = '', encoded = ''] = /^— ([^ ]+) ([^ ]+)$/.exec(line) ?? [];
  const bytes = decodeBase64(encoded);
  if (!isKeyName(name) || !bytes || bytes.length <= ID_BYTES)
    throw proofInvalidError('A line below a signed note is no signature.');
  return {
    name,
    id: bytes.subarray(0, ID_BYTES).toString('hex'),
    signature: bytes.subarray(ID_BYTES),
  };
}

/**
 * Parses a note. Throws `proof_invalid` when the note is too large, contains control characters or
 * lone surrogates, has no signature or too many, or has a malformed signature line.
 */
export function parseNote(note: string): Note {
  if (Buffer.byteLength(note) > LIMITS.tlog.noteBytes)
    throw proofInvalidError(`A signed note has more than ${LIMITS.tlog.noteBytes} bytes.`);
  // eslint-disable-next-line no-control-regex
  if (!note.isWellFormed() || /[\u0000-\u0009\u000b-\u001f]/.test(note))
    throw proofInvalidError('A signed note has characters that it must not have.');
  const end = note.lastIndexOf('\n\n');
  if (end < 0 || !note.endsWith('\n') || end + 2 === note.length)
    throw proofInvalidError('A signed note is a text, an empty line, and signatures.');
  const lines = note.slice(end + 2, -1).split('\n');
  if (lines.length > LIMITS.tlog.signatures)
    throw proofInvalidError(`A signed note has more than ${LIMITS.tlog.signatures} signatures.`);
  return { text: note.slice(0, end + 1), signatures: lines.map(parseSignatureLine) };
}

/** The signatures that carry the name and id of this key. */
export const signaturesOf = ({ signatures }: Note, { name, id }: NoteKey): NoteSignature[] =>
  signatures.filter((line) => line.name === name && line.id === id);

/**
 * Parses a note and verifies the Ed25519 signatures of the given keys. Signatures of other keys are
 * ignored. `by` lists the keys that signed. Throws `proof_invalid` when a given key has an invalid
 * or a duplicate signature, or when none of the keys signed.
 */
export function openNote(note: string, keys: readonly NoteKey[]): Note & { by: NoteKey[] } {
  const parsed = parseNote(note);
  const message = Buffer.from(parsed.text);
  const by = keys.filter((key) => {
    if (key.type !== ED25519) return false;
    const [line, duplicate] = signaturesOf(parsed, key);
    if (duplicate) throw proofInvalidError(`A note has two signatures of ${key.name}+${key.id}.`);
    if (line && !isSignedBy(key, message, line.signature))
      throw proofInvalidError(`The signature of ${key.name}+${key.id} below a note is wrong.`);
    return line !== undefined;
  });
  if (by.length === 0) throw proofInvalidError('A note has no signature of a key that is known.');
  return { ...parsed, by };
}

/** Signs a text, which must end with a newline, with every signer. */
export function signNote(text: string, signers: readonly NoteSigner[]): string {
  const message = Buffer.from(text);
  const lines = signers.map(({ key, sign }) =>
    signatureLine({ name: key.name, id: key.id, signature: sign(message) }),
  );
  return `${text}\n${lines.join('')}`;
}
