import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { readRegularFileSync } from '../lib/regularFile.ts';
import { isTurnlogError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

/** Size limit, far above the size of any key file. */
const MAX_SECRET_BYTES = 64 * 1024;

/**
 * Permissions that only the owner and the group may have. Volumes with an `fsGroup` of Kubernetes give
 * the group the right to write at each mount.
 */
const OPEN_MODE_BITS = 0o007;

/** A file with keys that only its owner and group may access. */
export interface SecretFile {
  file: string;
  /** Name for operators, such as `master key file`. */
  name: string;
  /** A sentence that says how to create the file. */
  how: string;
}

/** Creates a `configuration_invalid` error that never contains the content of the file. */
export const unusableSecretError = (
  { file, name }: SecretFile,
  why: string,
  cause?: unknown,
): TurnlogError =>
  new TurnlogError('configuration_invalid', `The ${name} ${file} can't be used: ${why}`, { cause });

/** Reads the text of the file. Throws `configuration_invalid`. */
export function readSecret(secret: SecretFile): string {
  const { file, how } = secret;
  try {
    return readRegularFileSync(file, ({ mode, size }) => {
      if (size > MAX_SECRET_BYTES)
        throw unusableSecretError(secret, `it is larger than ${MAX_SECRET_BYTES} bytes.`);
      if ((mode & OPEN_MODE_BITS) !== 0)
        throw unusableSecretError(
          secret,
          `others than its owner and group may access it. Take that away: chmod o-rwx ${file} (of a mounted secret, set its mode to 0440).`,
        );
    }).toString();
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
 * Creates the file atomically and durably, readable only by its owner. Keeps a file that already
 * exists, also when another process creates it at the same time. Throws `configuration_invalid`.
 */
export function createSecret(secret: SecretFile, text: () => string): void {
  const { file } = secret;
  if (existsSync(file)) return;
  const temporary = `${file}.${randomUUID()}`;
  try {
    writeFileSync(temporary, text(), { flag: 'wx', mode: 0o600, flush: true });
    linkSync(temporary, file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST')
      throw unusableSecretError(secret, `it can't be made: ${message}.`, error);
  } finally {
    rmSync(temporary, { force: true });
  }
  sync(dirname(file));
}
