/**
 * Master keys wrap the keys of texts: AES-256-GCM with the key's id as additional data, so that
 * what is kept for one key never opens as another. A master key's id is derived from it: no other
 * key stands under its name, and a line of the file that was mistyped is found.
 */
import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { WrappedKey } from '../../ports/keyStore.ts';
import { ADDED_BYTES, decrypt, encrypt } from './aesGcm.ts';
import type { TextKey } from './protectedText.ts';

const KEY_BYTES = 32;
const WRAPPED_BYTES = KEY_BYTES + ADDED_BYTES;

export interface MasterKeys {
  /** The first one's key wraps new keys. */
  ids: readonly [string, ...string[]];
  wrap(key: TextKey): WrappedKey;
  /** Errors: `key_missing` where its master key is not here, or it does not open with it. */
  unwrap(key: WrappedKey): TextKey;
}

/** 16 characters of base64url that tell nothing of the key. */
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
    return 'is no master key (<id>.<key>)';
  if (bytes.length !== KEY_BYTES)
    return `has a key of ${bytes.length} bytes where ${KEY_BYTES} are wanted`;
  const secret = createSecretKey(bytes);
  return idOf(secret) === id ? [id, secret] : 'was changed: its key is not the one of its id';
}

/**
 * The master keys of a file: one a line, the one that wraps new keys first; empty lines and lines
 * that begin with `#` are passed over. Errors: `configuration_invalid`, which says of which line
 * and never what stands in it.
 */
export function parseMasterKeys(text: string, file: string): MasterKeys {
  const invalid = (what: string): TurnlogError =>
    new TurnlogError('configuration_invalid', `The master key file ${file} can't be used: ${what}`);
  const keys = new Map<string, KeyObject>();
  for (const [at, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const found = keyOf(line);
    if (typeof found === 'string') throw invalid(`line ${at + 1} ${found}.`);
    if (keys.has(found[0])) throw invalid(`line ${at + 1} has the key ${found[0]} again.`);
    keys.set(...found);
  }
  const [current, ...others] = keys;
  if (!current) throw invalid('it has no key. Make one: npm run cli -- text-keys new-master');
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
        if (wrapped.length !== WRAPPED_BYTES) throw new RangeError('its length is another');
        const bytes = decrypt(wrapped, master, id);
        const secret = bytes.toString('base64url');
        bytes.fill(0);
        return { id, secret };
      } catch (error) {
        throw keyMissing(
          `The key ${id} does not open with its master key ${master_key_id}: the key store was changed. Restore it from its backup.`,
          error,
        );
      }
    },
  };
}

/** A key is not to be had, and nobody has destroyed it: an operator has to look. */
const keyMissing = (message: string, cause?: unknown): TurnlogError =>
  new TurnlogError('key_missing', message, { retriable: true, retryAfterSeconds: 10, cause });

const masterKeyMissing = (id: string, masterId: string): TurnlogError =>
  keyMissing(
    `The key ${id} is wrapped by the master key ${masterId}, which this process does not have. Add it to its master key file.`,
  );
