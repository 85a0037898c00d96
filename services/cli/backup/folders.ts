import { join, resolve } from 'node:path';
import {
  KEYS_BESIDE,
  realPathOf,
  requireApart,
  type BackupFolders,
} from '../../compose/operator/backup/backupFolder.ts';
import { BACKUP_FILES } from '../../compose/operator/backup/writeBackup.ts';
import type { StorageLocation } from '../../compose/logLocation.ts';
import type { Environment } from '../../../shared/lib/config/config.ts';
import { usageError } from '../failure.ts';

export interface FolderOptions {
  keys?: string;
  keysBeside?: true;
}

/**
 * The folders of a backup: its keys are in a folder with the same name and `-keys`, unless an option
 * says otherwise. Throws `configuration_invalid` where one is in another one, or in the service's.
 */
export async function locateBackup(
  folder: string,
  { keys, keysBeside }: FolderOptions,
  place: StorageLocation,
): Promise<BackupFolders> {
  if (keys !== undefined && keysBeside)
    throw usageError('--keys and --keys-beside exclude each other.');
  const real = await realPathOf(resolve(folder));
  const keysFolder = keysBeside
    ? join(real, KEYS_BESIDE)
    : await realPathOf(keys === undefined ? `${real}-keys` : resolve(keys));
  if (!keysBeside) requireApart(keysFolder, real, 'the folder of the log');
  if (place.kind === 'embedded')
    for (const own of new Set([place.dataFolder, place.keysFolder]))
      for (const one of [real, keysFolder])
        requireApart(one, await realPathOf(own), 'the folder of the service');
  return { folder: real, keysFolder };
}

/** The environment of a service that has a backup for its folders, and knows of nothing outside. */
export const environmentOfBackup = (
  env: Environment,
  { folder, keysFolder }: BackupFolders,
): Environment => ({
  ...env,
  DATA_DIR: folder,
  KEYS_DIR: keysFolder,
  MASTER_KEY_FILE: join(keysFolder, BACKUP_FILES.masterKey),
  LOG_SIGNING_KEY_FILE: join(keysFolder, BACKUP_FILES.signingKey),
  ...WITHOUT_OTHERS,
});

/** The options other than the folders of a service. */
export const WITHOUT_OTHERS = {
  EVENTSTOREDB_URL: undefined,
  DATABASE_URL: undefined,
  LOG_KEPT_CHECKPOINTS: undefined,
  LOG_WITNESSES_FILE: undefined,
} as const;
