import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { isTurnlogError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

/** What no file of keys needs, in bytes. */
const MAX_SECRET_BYTES = 64 * 1024;

/** What others than owner and group may do. */
const OTHERS_MODE_BITS = 0o007;

/** A file with keys that others than its owner and group have no right to. */
export interface SecretFile {
  file: string;
  /** As its operator knows it: `master key file`. */
  name: string;
  /** A sentence that says how to make one. */
  how: string;
}

/** `configuration_invalid`, with what is wrong with the file and never what stands in it. */
export const unusableSecretError = (
  { file, name }: SecretFile,
  why: string,
  cause?: unknown,
): TurnlogError =>
  new TurnlogError('configuration_invalid', `The ${name} ${file} can't be used: ${why}`, { cause });

/** The text of the file. Errors: `configuration_invalid`. */
export function readSecret(secret: SecretFile): string {
  const { file, how } = secret;
  try {
    const { mode, size } = statSync(file);
    if (size > MAX_SECRET_BYTES)
      throw unusableSecretError(secret, `it is larger than ${MAX_SECRET_BYTES} bytes.`);
    if ((mode & OTHERS_MODE_BITS) !== 0)
      throw unusableSecretError(
        secret,
        'everybody on this machine may read or change it. Take that away: chmod o-rwx (of a mounted secret, set its mode to 0440).',
      );
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isTurnlogError(error)) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw unusableSecretError(secret, `there is none. ${how}`, error);
    throw unusableSecretError(
      secret,
      code === 'EACCES' ? 'this user may not read it.' : `${message}.`,
      error,
    );
  }
}

function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/**
 * Makes the file where there is none, durable and whole from the first moment, for its owner alone;
 * another one that is there by then stays. Errors: `configuration_invalid`.
 */
export function createSecret(secret: SecretFile, text: () => string): void {
  const { file } = secret;
  if (existsSync(file)) return;
  const whole = `${file}.${randomUUID()}`;
  try {
    writeFileSync(whole, text(), { flag: 'wx', mode: 0o600, flush: true });
    linkSync(whole, file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST')
      throw unusableSecretError(secret, `it can't be made: ${message}.`, error);
  } finally {
    rmSync(whole, { force: true });
  }
  sync(dirname(file));
}
