import { existsSync } from 'node:fs';
import {
  newMasterKey,
  parseMasterKeys,
  type MasterKeys,
} from '../../shared/eventlog/encryption/masterKeys.ts';
import { createSecret, readSecret, unusableSecretError, type SecretFile } from './secretFile.ts';

const secretIn = (file: string): SecretFile => ({
  file,
  name: 'master key file',
  how: 'Make one with `npm run cli -- text-keys new-master --out <file>`.',
});

/**
 * Reads the master keys of a file, which only its owner and group may access. Throws
 * `configuration_invalid` without the content of the file.
 */
export const readMasterKeys = (file: string): MasterKeys =>
  parseMasterKeys(readSecret(secretIn(file)), file);

/** Creates a file with a new master key unless it exists. Throws `configuration_invalid`. */
export const createMasterKeyFile = (file: string): void =>
  createSecret(secretIn(file), () => `${newMasterKey()}\n`);

/**
 * Creates a file with a new master key and the lines of another file, and returns the new key's id. Throws
 * `configuration_invalid` if the file exists.
 */
export function writeNextMasterKeyFile({
  file,
  source,
  last,
}: {
  file: string;
  source: string | undefined;
  /** True to put the new key after the others, so that it wraps nothing yet. */
  last: boolean;
}): string {
  const secret = secretIn(file);
  if (existsSync(file)) throw unusableSecretError(secret, 'it exists, and is not replaced.');
  const line = newMasterKey();
  const lines = source === undefined ? [] : [readSecret(secretIn(source)).trimEnd()];
  createSecret(secret, () => `${(last ? [...lines, line] : [line, ...lines]).join('\n')}\n`);
  const { ids } = readMasterKeys(file);
  return ids[last ? ids.length - 1 : 0]!;
}
