import { measureSpace } from '../../../infra/files/freeSpace.ts';
import type { Config } from '../../../shared/lib/config/config.ts';
import { registerResource } from '../../../shared/lib/concurrency/resources.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import {
  createDiskWatch,
  parseFreeLevel,
  type DiskWatch,
} from '../../../shared/storage/diskWatch.ts';
import { createStorageQuotas, type StorageQuotas } from '../../../shared/storage/quotas.ts';
import type { Quotas } from '../../../shared/storage/quotaRules.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import { startPolling } from '../../process/upkeep/periodicTask.ts';
import type { Opening } from '../opening.ts';
import { systemClock } from '../system.ts';

const defaultQuotas = (config: Config): Quotas => ({
  events_per_day: config.ACCOUNT_EVENTS_PER_DAY,
  bytes_per_day: config.ACCOUNT_BYTES_PER_DAY,
  events: config.ACCOUNT_EVENTS,
  bytes: config.ACCOUNT_BYTES,
  audits_per_day: config.ACCOUNT_AUDITS_PER_DAY,
});

/**
 * Opens the quotas of accounts, and the watch over the disks of these folders; a replica has none.
 */
export function openStorageLimits(
  { config, logger }: Pick<Opening, 'config' | 'logger'>,
  readModels: Pick<ReadModels, 'findAccount' | 'findStorage'>,
  folders: readonly string[],
): { quotas: StorageQuotas; disk: DiskWatch; part: ProcessPart } {
  const quotas = createStorageQuotas({
    readModels,
    defaults: defaultQuotas(config),
    clock: systemClock,
  });
  const disk = createDiskWatch({
    folders: [...new Set(folders)],
    measure: measureSpace,
    warnFree: parseFreeLevel(config.DISK_WARN_FREE),
    stopFree: parseFreeLevel(config.DISK_STOP_FREE),
    logger,
  });
  registerResource('disk', disk);
  return { quotas, disk, part: diskPart(disk) };
}

const diskPart = (disk: DiskWatch): ProcessPart => ({
  prepare: disk.poll,
  async health() {
    const short = disk.health();
    return short ? { disk: short } : {};
  },
  upkeep: () => startPolling(disk.poll),
});
