/** C2SP signed notes: keys, checkpoints, the log's signature and the cosignatures of witnesses. */
import {
  digest,
  fromBase64,
  fromBase64Hash,
  join,
  readDecimal,
  toHex,
  utf8,
  type Bytes,
} from './bytes.ts';
import type { Tree } from './merkle.ts';
import { Mismatch, unreadable } from './mismatch.ts';

const MAX_NOTE_CHARACTERS = 1_048_576;
const MAX_SIGNATURES = 100;
const ID_BYTES = 4;
const TIME_BYTES = 8;
const ED25519_BYTES = 64;
const KINDS: Readonly<Record<number, 'log' | 'witness'>> = { 0x01: 'log', 0x04: 'witness' };

// eslint-disable-next-line no-control-regex
const KEY_NAME = /^[^\p{White_Space}+\u0000-\u001f]+$/u;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0009\u000b-\u001f]/;

/** A public key of a log or of a witness. */
export interface TrustedKey {
  vkey: string;
  name: string;
  /** 8 hex digits. */
  id: string;
  kind: 'log' | 'witness';
  key: Bytes;
}

/** A signature line. */
export interface Signature {
  name: string;
  id: string;
  bytes: Bytes;
}

/** A checkpoint whose signatures are not verified yet. */
export interface Checkpoint extends Tree {
  /** The whole note. */
  note: string;
  /** What is signed. */
  text: string;
  origin: string;
  signatures: Signature[];
}

/** Reads a vkey. Throws Mismatch. */
export async function readKey(vkey: string): Promise<TrustedKey> {
  const [, name = '', id, encoded = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey) ?? [];
  const bytes = fromBase64(encoded);
  const kind = KINDS[bytes?.[0] ?? 0];
  if (!bytes || !kind || bytes.length !== 33 || !KEY_NAME.test(name))
    throw unreadable(
      `“${vkey.slice(0, 80)}” is no verifier key: it reads name+8 hex digits+base64.`,
    );
  const due = toHex((await digest(utf8(`${name}\n`), bytes)).slice(0, ID_BYTES));
  if (due !== id) throw unreadable(`The verifier key of ${name} has the id of another key.`);
  return { vkey, name, id, kind, key: bytes.slice(1) };
}

/** Reads the keys of a text, one per line; empty lines are ignored. Throws Mismatch. */
export const readKeys = (text: string): Promise<TrustedKey[]> =>
  Promise.all(
    text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .map(readKey),
  );

function readSignature(line: string): Signature {
  const [, name = '', encoded = ''] = /^— ([^ ]+) ([^ ]+)$/.exec(line) ?? [];
  const bytes = fromBase64(encoded);
  if (!KEY_NAME.test(name) || !bytes || bytes.length <= ID_BYTES)
    throw unreadable('A line below the checkpoint is no signature.');
  return { name, id: toHex(bytes.slice(0, ID_BYTES)), bytes: bytes.slice(ID_BYTES) };
}

/** Reads a checkpoint without verifying its signatures. Throws Mismatch. */
export function readCheckpoint(note: string): Checkpoint {
  const end = note.lastIndexOf('\n\n');
  const isNote = end >= 0 && note.endsWith('\n') && end + 2 < note.length;
  if (!isNote || note.length > MAX_NOTE_CHARACTERS || !note.isWellFormed() || CONTROL.test(note))
    throw unreadable('A checkpoint is a text, an empty line, and signatures.');
  const text = note.slice(0, end + 1);
  const lines = text.slice(0, -1).split('\n');
  const [origin = '', count = '', hash = ''] = lines;
  const size = readDecimal(count);
  const root = fromBase64Hash(hash);
  if (size === undefined || !root || lines.includes(''))
    throw unreadable('A checkpoint has the log’s name, its size and its root on its first lines.');
  const signatures = note.slice(end + 2, -1).split('\n');
  if (signatures.length > MAX_SIGNATURES)
    throw unreadable(`A checkpoint has more than ${MAX_SIGNATURES} signatures.`);
  return { note, text, origin, size, root, signatures: signatures.map(readSignature) };
}

async function isSigned({ key }: TrustedKey, message: Bytes, signature: Bytes): Promise<boolean> {
  const imported = await crypto.subtle.importKey('raw', key, 'Ed25519', false, ['verify']);
  return crypto.subtle.verify('Ed25519', imported, signature, message);
}

/** The key of the log that a checkpoint is of, among keys. */
export const logKeyOf = (
  { origin }: Checkpoint,
  keys: readonly TrustedKey[],
): TrustedKey | undefined => keys.find(({ kind, name }) => kind === 'log' && name === origin);

/** Throws Mismatch unless the log has signed the checkpoint with this key, once. */
export async function requireSignature(checkpoint: Checkpoint, key: TrustedKey): Promise<void> {
  const { origin, text, signatures } = checkpoint;
  const meaning =
    'Somebody else has signed it, or it was changed after it was signed. Nothing that it covers is proven.';
  const own = signatures.filter(({ name, id }) => name === key.name && id === key.id);
  if (key.kind !== 'log' || key.name !== origin || own.length !== 1)
    throw new Mismatch(
      `The checkpoint of ${checkpoint.size} events is not signed by ${key.name}.`,
      {
        expected: `${key.name}+${key.id}`,
        actual: signatures.map(({ name, id }) => `${name}+${id}`).join(', '),
        meaning,
      },
    );
  if (!(await isSigned(key, utf8(text), own[0]!.bytes)))
    throw new Mismatch(
      `The signature of ${key.name} below the checkpoint of ${checkpoint.size} events is wrong.`,
      { meaning },
    );
}

/** A witness, and when it cosigned by its clock; undefined when it did not, or wrongly. */
export interface Cosignature {
  name: string;
  id: string;
  time: string | undefined;
}

async function timeOf(text: string, witness: TrustedKey, bytes: Bytes): Promise<Date | undefined> {
  if (bytes.length !== TIME_BYTES + ED25519_BYTES) return undefined;
  const time = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0);
  const message = join(utf8(`cosignature/v1\ntime ${time}\n`), utf8(text));
  const date = new Date(Number(time) * 1_000);
  const isRight = await isSigned(witness, message, bytes.slice(TIME_BYTES));
  return isRight && !Number.isNaN(date.getTime()) ? date : undefined;
}

/** Verifies the cosignatures of the trusted witnesses; a key that is given twice counts once. */
export async function cosignaturesOf(
  { text, signatures }: Checkpoint,
  keys: readonly TrustedKey[],
): Promise<Cosignature[]> {
  const witnesses = new Map(
    keys.filter(({ kind }) => kind === 'witness').map((key) => [toHex(key.key), key]),
  );
  return Promise.all(
    [...witnesses.values()].map(async (witness) => {
      const { name, id } = witness;
      const own = signatures.filter((line) => line.name === name && line.id === id);
      const times = await Promise.all(own.map(({ bytes }) => timeOf(text, witness, bytes)));
      return { name, id, time: times.find((time) => time !== undefined)?.toISOString() };
    }),
  );
}
