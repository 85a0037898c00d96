/**
 * Master keys wrap text keys: AES-256-GCM with the text key's id as additional data, so that a
 * wrapped key can't be unwrapped under another id. A master key's id is derived from the key, which
 * detects mistyped lines of the file.
 */
import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { WrappedKey } from '../../ports/keyStore.ts';
import { ADDED_BYTES, decrypt, encrypt } from './aesGcm.ts';
import type { TextKey } from './protectedText.ts';

const KEY_BYTES = 32;
const WRAPPED_BYTES = KEY_BYTES + ADDED_BYTES;

export interface MasterKeys {
  /** The first master key wraps new keys. */
  ids: readonly [string, ...string[]];
  wrap(key: TextKey): WrappedKey;
  /** Throws `key_missing` when the master key is unavailable or does not unwrap the key. */
  unwrap(key: WrappedKey): TextKey;
}

/** 16 characters of base64url that reveal nothing about the key. */
const idOf = (secret: KeyObject): string =>
  createHmac('sha256', secret).update('turnlog master key').digest('base64url').slice(0, 16);

/** A new master key as a line of the master key file: `<id>.<key in base64url>`. */
export function newMasterKey(): string {
  const bytes = randomBytes(KEY_BYTES);
  return `${idOf(createSecretKey(bytes))}.${bytes.toString('base64url')}`;
}

function keyOf(line: string): [id: string, secret: KeyObject] | string {
  const [id = '', text = '', ...rest] = line.split('.');
  const bytes = Buffer.from(text, 'base64url');
  if (rest.length > 0 || !/^[\w-]+$/.test(text) || id.length !== 16)
    return 'is not a master key (<id>.<key>)';
  if (bytes.length !== KEY_BYTES)
    return `has a key of ${bytes.length} bytes instead of ${KEY_BYTES}`;
  const secret = createSecretKey(bytes);
  return idOf(secret) === id ? [id, secret] : 'was changed: its key does not match its id';
}

/**
 * Parses a master key file: one key per line, first the key that wraps new keys; empty lines and
 * lines that begin with `#` are ignored. Throws `configuration_invalid` with the line number, never
 * its content.
 */
export function parseMasterKeys(text: string, file: string): MasterKeys {
  const invalid = (problem: string): TurnlogError =>
    new TurnlogError('configuration_invalid', `The master key file ${file} is invalid: ${problem}`);
  const keys = new Map<string, KeyObject>();
  for (const [at, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const entry = keyOf(line);
    if (typeof entry === 'string') throw invalid(`line ${at + 1} ${entry}.`);
    if (keys.has(entry[0])) throw invalid(`line ${at + 1} repeats the key ${entry[0]}.`);
    keys.set(...entry);
  }
  const [current, ...others] = keys;
  if (!current)
    throw invalid(
      'it has no key. Restore it from a backup. If it never had one, remove it, and create it with: npm run cli -- text-keys new-master --out <file>',
    );
  return createMasterKeys(current, others);
}

type Entry = [id: string, secret: KeyObject];

function createMasterKeys(current: Entry, others: readonly Entry[]): MasterKeys {
  const secrets = new Map([current, ...others]);
  const [currentId, currentSecret] = current;
  return {
    ids: [currentId, ...others.map(([id]) => id)],
    wrap({ id, secret }) {
      const bytes = Buffer.from(secret, 'base64url');
      const wrapped = encrypt(bytes, currentSecret, id);
      bytes.fill(0);
      return { key_id: id, master_key_id: currentId, wrapped };
    },
    unwrap({ key_id: id, master_key_id, wrapped }) {
      const master = secrets.get(master_key_id);
      if (!master) throw masterKeyMissing(id, master_key_id);
      try {
        if (wrapped.length !== WRAPPED_BYTES) throw new RangeError('unexpected length');
        const bytes = decrypt(wrapped, master, id);
        const secret = bytes.toString('base64url');
        bytes.fill(0);
        return { id, secret };
      } catch (error) {
        throw keyMissing(
          `The key ${id} can't be unwrapped with its master key ${master_key_id}: the key store was changed. Restore it from its backup.`,
          error,
        );
      }
    },
  };
}

/** A key is unavailable although it was not destroyed: an operator has to act. */
const keyMissing = (message: string, cause?: unknown): TurnlogError =>
  new TurnlogError('key_missing', message, { retriable: true, retryAfterSeconds: 10, cause });

const masterKeyMissing = (id: string, masterId: string): TurnlogError =>
  keyMissing(
    `The key ${id} is wrapped by the master key ${masterId}, which this process does not have. Add it to its master key file.`,
  );
