import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { StorageLocation } from '../../logLocation.ts';

/** A file in a restored data folder until it may be used. It names the folders that were empty before. */
export const UNFINISHED_RESTORE = 'restore-unfinished';

/** The file that describes the backup in a folder. */
export const MANIFEST_FILE = 'backup.json';

/**
 * Throws `configuration_invalid` for the folder of a backup: a database changes when it is opened, and
 * `restore` would refuse it afterwards.
 */
export function requireNoBackup(folder: string): void {
  if (!existsSync(join(folder, MANIFEST_FILE))) return;
  throw new TurnlogError(
    'configuration_invalid',
    `${folder} holds a backup, which is only read by restore. Restore it into other folders: npm run cli -- restore ${folder}`,
  );
}

/**
 * Throws `configuration_invalid` for folders of a backup, and for those whose restore was interrupted:
 * erasures since the backup may not have been repeated.
 */
export function requireFinishedRestore(place: StorageLocation): void {
  if (place.kind === 'replica') return;
  const { dataFolder: folder, keysFolder } = place;
  for (const one of new Set([folder, keysFolder])) requireNoBackup(one);
  if (!existsSync(join(folder, UNFINISHED_RESTORE))) return;
  throw new TurnlogError(
    'configuration_invalid',
    `The restore into ${folder} is not finished, and persons who were erased may be readable there. Repeat the same restore command.`,
  );
}
