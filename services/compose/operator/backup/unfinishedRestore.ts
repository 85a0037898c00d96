import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { StorageLocation } from '../../logLocation.ts';

/** A file in a restored data folder until it may be used. It names the folders that were empty before. */
export const UNFINISHED_RESTORE = 'restore-unfinished';

/**
 * Throws `configuration_invalid` for folders whose restore was interrupted: erasures since the backup
 * may not have been repeated.
 */
export function requireFinishedRestore(place: StorageLocation): void {
  if (place.kind === 'replica') return;
  const { dataFolder: folder } = place;
  if (!existsSync(join(folder, UNFINISHED_RESTORE))) return;
  throw new TurnlogError(
    'configuration_invalid',
    `The restore into ${folder} is not finished, and persons who were erased may be readable there. Repeat the same restore command.`,
  );
}
