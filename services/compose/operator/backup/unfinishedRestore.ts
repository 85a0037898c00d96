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
 * `restore` would refuse it afterwards. Throws the same for a folder whose restore was interrupted:
 * erasures since the backup may not have been repeated.
 */
export function requireUsableFolder(folder: string): void {
  if (existsSync(join(folder, MANIFEST_FILE)))
    throw new TurnlogError(
      'configuration_invalid',
      `${folder} holds a backup, which is only read by restore. Restore it into other folders: npm run cli -- restore ${folder}`,
    );
  if (existsSync(join(folder, UNFINISHED_RESTORE)))
    throw new TurnlogError(
      'configuration_invalid',
      `The restore into ${folder} is not finished, and persons who were erased may be readable there. Repeat the same restore command.`,
    );
}

/** Checks the folders of a service as `requireUsableFolder` does. */
export function requireFinishedRestore(place: StorageLocation): void {
  if (place.kind === 'replica') return;
  for (const folder of new Set([place.dataFolder, place.keysFolder])) requireUsableFolder(folder);
}
