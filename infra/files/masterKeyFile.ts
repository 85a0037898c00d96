import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { isTurnlogError, TurnlogError } from '../../shared/errors.ts';
import {
  newMasterKey,
  parseMasterKeys,
  type MasterKeys,
} from '../../shared/eventlog/masterKeys.ts';

/** What no file of master keys needs, in bytes. */
const MOST_BYTES = 64 * 1024;

/** What others than owner and group may do. */
const OTHERS = 0o007;

const HOW =
  'Make one with `npm run cli -- keys master new`, in a file that only its owner can read.';

function unusable(file: string, why: string, cause?: unknown): TurnlogError {
  const message = `The master key file ${file} can't be used: ${why}`;
  return new TurnlogError('configuration_invalid', message, { cause });
}

/**
 * The master keys of a file. Others than its owner and group may have no right to it.
 * Errors: `configuration_invalid`, which never says what stands in it.
 */
export function readMasterKeys(file: string): MasterKeys {
  try {
    const { mode, size } = statSync(file);
    if (size > MOST_BYTES) throw unusable(file, `it is larger than ${MOST_BYTES} bytes.`);
    if ((mode & OTHERS) !== 0)
      throw unusable(
        file,
        'everybody on this machine may read or change it. Take that away: chmod o-rwx (of a mounted secret, set its mode to 0440).',
      );
    return parseMasterKeys(readFileSync(file, 'utf8'), file);
  } catch (error) {
    if (isTurnlogError(error)) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw unusable(file, `there is none. ${HOW}`, error);
    throw unusable(file, code === 'EACCES' ? 'this user may not read it.' : `${message}.`, error);
  }
}

function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/**
 * Makes a file with one new master key, durable and whole from the first moment, for its owner
 * alone; another one that is there by then stays. Errors: `configuration_invalid`.
 */
export function makeMasterKeyFile(file: string): void {
  const whole = `${file}.${randomUUID()}`;
  try {
    writeFileSync(whole, `${newMasterKey()}\n`, { flag: 'wx', mode: 0o600, flush: true });
    linkSync(whole, file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw unusable(file, `it can't be made: ${message}.`, error);
  } finally {
    rmSync(whole, { force: true });
  }
  sync(dirname(file));
}
