import {
  newMasterKey,
  parseMasterKeys,
  type MasterKeys,
} from '../../shared/eventlog/encryption/masterKeys.ts';
import { createSecret, readSecret, type SecretFile } from './secretFile.ts';

const secretIn = (file: string): SecretFile => ({
  file,
  name: 'master key file',
  how: 'Make one with `npm run cli -- text-keys new-master`, in a file that only its owner can read.',
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
