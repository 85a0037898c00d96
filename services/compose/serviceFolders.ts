import { existsSync } from 'node:fs';
import { requirePrivateFolder } from '../../infra/sqlite/dataFolder.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { StorageLocation } from './logLocation.ts';
import { requireFinishedRestore } from './operator/backup/unfinishedRestore.ts';

/**
 * Checks the existing folders of a service before it opens them: a restore into them is finished, they
 * hold no backup, and no other user may change them. Throws `configuration_invalid`.
 */
export function requireServiceFolders(place: StorageLocation, logger: Pick<Logger, 'warn'>): void {
  requireFinishedRestore(place);
  if (place.kind === 'replica') return;
  const { dataFolder, keysFolder } = place;
  if (existsSync(dataFolder)) requirePrivateFolder(dataFolder, logger);
  if (keysFolder !== dataFolder && existsSync(keysFolder))
    requirePrivateFolder(keysFolder, logger, 'KEYS_DIR');
}
