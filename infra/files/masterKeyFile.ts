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
 * The master keys of a file. Others than its owner and group may have no right to it.
 * Errors: `configuration_invalid`, which never says what stands in it.
 */
export const readMasterKeys = (file: string): MasterKeys =>
  parseMasterKeys(readSecret(secretIn(file)), file);

/** Makes a file with one new master key where there is none. Errors: `configuration_invalid`. */
export const createMasterKeyFile = (file: string): void =>
  createSecret(secretIn(file), () => `${newMasterKey()}\n`);
