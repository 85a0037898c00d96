/** C2SP signed notes: keys, checkpoints, the log's signature and the cosignatures of witnesses. */
import { digest, fromBase64, fromBase64Hash, join, toHex, utf8, type Bytes } from './bytes.ts';
import type { Tree } from './merkle.ts';
import { Mismatch, unreadable } from './mismatch.ts';

const MOST_CHARACTERS = 1_048_576;
const MOST_SIGNATURES = 100;
const KINDS: Readonly<Record<number, 'log' | 'witness'>> = { 0x01: 'log', 0x04: 'witness' };

// eslint-disable-next-line no-control-regex
const KEY_NAME = /^[^\p{White_Space}+\u0000-\u001f]+$/u;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0009\u000b-\u001f]/;

/** A public key of a log or of a witness. `id` is 8 hex digits. */
export interface TrustedKey {
  name: string;
  id: string;
  kind: 'log' | 'witness';
  key: Bytes;
}

/** A checkpoint whose signatures are not verified yet. `text` is what they sign. */
export interface Checkpoint extends Tree {
  note: string;
  text: string;
  origin: string;
  signatures: { name: string; id: string; bytes: Bytes }[];
}

async function readKey(vkey: string): Promise<TrustedKey> {
  const [, name = '', id, encoded = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey) ?? [];
  const bytes = fromBase64(encoded);
  const kind = KINDS[bytes?.[0] ?? 0];
  if (!bytes || !kind || bytes.length !== 33 || !KEY_NAME.test(name))
    throw unreadable(
      `“${vkey.slice(0, 80)}” is no verifier key: it reads name+8 hex digits+base64.`,
    );
  if (toHex(await digest(utf8(`${name}\n`), bytes)).slice(0, 8) !== id)
    throw unreadable(`The verifier key of ${name} has the id of another key.`);
  return { name, id, kind, key: bytes.slice(1) };
}

/** Reads vkeys, one per line. Throws Mismatch. */
export function readKeys(text: string): Promise<TrustedKey[]> {
  const lines = text.split('\n').map((line) => line.trim());
  return Promise.all(lines.filter((line) => line !== '').map(readKey));
}

function readSignature(line: string): Checkpoint['signatures'][number] {
  const [, name = '', encoded = ''] = /^— ([^ ]+) ([^ ]+)$/.exec(line) ?? [];
  const bytes = fromBase64(encoded);
  if (!KEY_NAME.test(name) || !bytes || bytes.length <= 4)
    throw unreadable('A line below the checkpoint is no signature.');
  return { name, id: toHex(bytes.slice(0, 4)), bytes: bytes.slice(4) };
}

/** Reads a checkpoint without verifying its signatures. Throws Mismatch. */
export function readCheckpoint(note: string): Checkpoint {
  const end = note.lastIndexOf('\n\n');
  const isNote = end >= 0 && note.endsWith('\n') && end + 2 < note.length;
  if (!isNote || note.length > MOST_CHARACTERS || !note.isWellFormed() || CONTROL.test(note))
    throw unreadable('A checkpoint is a text, an empty line, and signatures.');
  const text = note.slice(0, end + 1);
  const lines = text.slice(0, -1).split('\n');
  const [origin = '', count = '', hash = ''] = lines;
  const size = /^(0|[1-9][0-9]*)$/.test(count) ? Number(count) : NaN;
  const root = fromBase64Hash(hash);
  if (!Number.isSafeInteger(size) || lines.includes(''))
    throw unreadable('A checkpoint has the log’s name, its size and its root on its first lines.');
  const signatures = note.slice(end + 2, -1).split('\n');
  if (signatures.length > MOST_SIGNATURES)
    throw unreadable(`A checkpoint has more than ${MOST_SIGNATURES} signatures.`);
  return { note, text, origin, size, root, signatures: signatures.map(readSignature) };
}

async function isSigned({ key }: TrustedKey, message: Bytes, signature: Bytes): Promise<boolean> {
  const imported = await crypto.subtle.importKey('raw', key, 'Ed25519', false, ['verify']);
  return crypto.subtle.verify('Ed25519', imported, signature, message);
}

/** Throws Mismatch unless the log has signed the checkpoint with this key, once. */
export async function requireSignature(checkpoint: Checkpoint, key: TrustedKey): Promise<void> {
  const { text, origin, signatures } = checkpoint;
  const [own, ...others] = signatures.filter(
    (each) => each.name === key.name && each.id === key.id,
  );
  const isOfLog = key.kind === 'log' && key.name === origin && others.length === 0;
  if (isOfLog && own && (await isSigned(key, utf8(text), own.bytes))) return;
  throw new Mismatch(`The checkpoint of ${checkpoint.size} events is not signed by ${key.name}.`, {
    expected: `${key.name}+${key.id}`,
    actual: own ? 'another signature' : signatures.map(({ name }) => name).join(', '),
    meaning: 'Somebody else has signed it, or it was changed after it was signed.',
  });
}

/** Who signed a checkpoint, or should have; a witness says when, by its clock. */
export interface Signer {
  name: string;
  role: 'Log' | 'Witness';
  status: 'Valid' | 'Wrong' | 'Missing' | 'Not checked: no key';
  time?: string | undefined;
}

/** When a witness cosigned a text; undefined for a signature that is wrong. */
async function timeOf(text: string, key: TrustedKey, bytes: Bytes): Promise<string | undefined> {
  if (bytes.length !== 8 + 64) return undefined;
  const time = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0);
  const date = new Date(Number(time) * 1_000);
  const message = join(utf8(`cosignature/v1\ntime ${time}\n`), utf8(text));
  const isRight = await isSigned(key, message, bytes.slice(8));
  return isRight && !Number.isNaN(date.getTime()) ? date.toISOString() : undefined;
}

/** Verifies the signatures of a checkpoint with the trusted keys, and says which are missing. */
export function signersOf(checkpoint: Checkpoint, keys: readonly TrustedKey[]): Promise<Signer[]> {
  const { origin, text, signatures } = checkpoint;
  const due = keys.filter(({ kind, name }) => kind === 'witness' || name === origin);
  const trusted = new Map(due.map((key) => [`${key.name}+${key.id}`, key]));
  const lines = new Map(signatures.map((line) => [`${line.name}+${line.id}`, line]));
  return Promise.all(
    [...new Set([...lines.keys(), ...trusted.keys()])].map(async (id): Promise<Signer> => {
      const [key, line] = [trusted.get(id), lines.get(id)];
      const { name } = (key ?? line)!;
      const signer = { name, role: name === origin ? 'Log' : 'Witness' } as const;
      if (!key) return { ...signer, status: 'Not checked: no key' };
      if (!line) return { ...signer, status: 'Missing' };
      const time = key.kind === 'log' ? undefined : await timeOf(text, key, line.bytes);
      const isValid = key.kind === 'log' ? await isSigned(key, utf8(text), line.bytes) : time;
      return { ...signer, time, status: isValid ? 'Valid' : 'Wrong' };
    }),
  );
}
