import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { TurnlogError } from '../../shared/errors.ts';

const PEM = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/g;
/** More than a change of keys needs. */
const MOST_KEYS = 8;

const refuse = (file: string, sentence: string, cause?: unknown): TurnlogError =>
  new TurnlogError('configuration_invalid', `The signing key file ${file} ${sentence}`, { cause });

/**
 * The Ed25519 keys of a file of PEM texts. Errors: `configuration_invalid` where it can't be read, or
 * holds anything else.
 */
export function readSigningKeys(file: string): KeyObject[] {
  try {
    const texts = readFileSync(file, 'utf8').match(PEM) ?? [];
    const keys = texts.map((text) => createPrivateKey(text));
    if (keys.length === 0 || keys.length > MOST_KEYS)
      throw refuse(file, `holds ${keys.length} private keys: 1 to ${MOST_KEYS} are wanted.`);
    if (keys.some(({ asymmetricKeyType }) => asymmetricKeyType !== 'ed25519'))
      throw refuse(file, 'holds a key that is not an Ed25519 key.');
    return keys;
  } catch (error) {
    if (error instanceof TurnlogError) throw error;
    // The text of an error of the parser may quote the key.
    const { code = 'it holds no key' } = error as NodeJS.ErrnoException;
    throw refuse(
      file,
      `can't be read (${code}). Put it back, or make a key: openssl genpkey -algorithm ed25519 -out log-signing-key.pem`,
      error,
    );
  }
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  fsyncSync(handle);
  closeSync(handle);
}

/**
 * Makes a file with a new key, which only its owner can read, where there is none. Errors:
 * `configuration_invalid`.
 */
export function makeSigningKey(file: string): void {
  if (existsSync(file)) return;
  const { privateKey } = generateKeyPairSync('ed25519');
  const whole = `${file}.tmp`;
  try {
    rmSync(whole, { force: true });
    const handle = openSync(whole, 'wx', 0o600);
    writeSync(handle, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
    fsyncSync(handle);
    closeSync(handle);
    // A link never takes the place of a key that another process has made.
    linkSync(whole, file);
    rmSync(whole);
    syncFolder(dirname(file));
  } catch (error) {
    throw refuse(file, `can't be made: ${(error as Error).message}.`, error);
  }
}
