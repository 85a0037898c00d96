/** C2SP signed-note: a text, an empty line, and lines with signatures of it. */
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { decodeBase64 } from './base64.ts';
import { ED25519, isKeyName, isSignedBy, type NoteKey, type NoteSigner } from './noteKeys.ts';

const ID_BYTES = 4;

/** A line below a note. */
export interface NoteSignature {
  name: string;
  /** 8 hex digits. */
  id: string;
  /** What follows the id. */
  signature: Buffer;
}

/** A note as it stands there: nothing of it is verified. */
export interface Note {
  /** With its last newline. */
  text: string;
  signatures: readonly NoteSignature[];
}

/** The line of a signature, with its newline. */
export const signatureLine = ({ name, id, signature }: NoteSignature): string =>
  `— ${name} ${Buffer.concat([Buffer.from(id, 'hex'), signature]).toString('base64')}\n`;

/** The signature of a line without its newline. Errors: `proof_invalid`. */
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
 * Reads a note. Errors: `proof_invalid` where it is too large, has control characters or lone
 * surrogates, has no signature or more than are read, or a line below it is no signature.
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

/** The signatures that name this key. */
export const signaturesOf = ({ signatures }: Note, { name, id }: NoteKey): NoteSignature[] =>
  signatures.filter((line) => line.name === name && line.id === id);

/**
 * Reads a note and verifies the Ed25519 signatures of the keys that are known; others are passed
 * over. `by` has the keys that signed. Errors: `proof_invalid` where a signature of a known key is
 * wrong, stands there twice, or none of them signed; those of `parseNote`.
 */
export function openNote(note: string, keys: readonly NoteKey[]): Note & { by: NoteKey[] } {
  const parsed = parseNote(note);
  const message = Buffer.from(parsed.text);
  const by = keys.filter((key) => {
    if (key.type !== ED25519) return false;
    const [found, second] = signaturesOf(parsed, key);
    if (second) throw proofInvalidError(`A note has two signatures of ${key.name}+${key.id}.`);
    if (found && !isSignedBy(key, message, found.signature))
      throw proofInvalidError(`The signature of ${key.name}+${key.id} below a note is wrong.`);
    return found !== undefined;
  });
  if (by.length === 0) throw proofInvalidError('A note has no signature of a key that is known.');
  return { ...parsed, by };
}

/** The note of a text, which ends with a newline, with a signature of each signer. */
export function signNote(text: string, signers: readonly NoteSigner[]): string {
  const message = Buffer.from(text);
  const lines = signers.map(({ key, sign }) =>
    signatureLine({ name: key.name, id: key.id, signature: sign(message) }),
  );
  return `${text}\n${lines.join('')}`;
}
