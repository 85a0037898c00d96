import { resolve } from 'node:path';
import { createDataFolder } from '../../infra/sqlite/dataFolder.ts';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore/eventStore.ts';
import { openSqliteEventLog } from '../../infra/sqlite/eventStore/log.ts';
import { requirePositionForm as requirePositionOf } from '../../infra/sqlite/eventStore/reader.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { EventLog, EventStore, Position } from '../../shared/ports/eventStore.ts';
import type { ProjectorLogger } from '../followers/projector/projection.ts';
import { isCluster } from './requireLog.ts';
import type { LogLocation } from './logLocation.ts';

/** The client of EventStoreDB is large: it is loaded only where one is configured. */
async function openCluster(
  connectionString: string,
  logger: Pick<ProjectorLogger, 'warn'>,
): Promise<EventStore> {
  const { openEventStoreDb } = await import('../../infra/eventstoredb/eventStore.ts');
  return openEventStoreDb({ connectionString, logger });
}

/** The event store of a place. Errors: those of its adapter. */
export const openEventStore = (log: LogLocation, logger: Logger): Promise<EventStore> =>
  'folder' in log ? openSqliteEventStore(log) : openCluster(log.cluster, logger);

/** The same for a thread that only reads. */
export const openEventLog = async (log: LogLocation, logger: ProjectorLogger): Promise<EventLog> =>
  'folder' in log ? openSqliteEventLog(log) : openCluster(log.cluster, logger);

/** The place of a log by its name: a connection string, or a data folder. */
const logPlaceOf = (name: string): LogLocation =>
  isCluster(name) ? { cluster: name } : { folder: resolve(name) };

/**
 * The event store of a place, whose folder is made where it is not there. Errors: those of its
 * adapter, `configuration_invalid`.
 */
export async function openOrCreateEventStore(
  log: LogLocation,
  logger: Logger,
): Promise<EventStore> {
  if ('folder' in log) createDataFolder(log.folder);
  return openEventStore(log, logger);
}

/** The same by its name. */
export const openNamedStore = (name: string, logger: Logger): Promise<EventStore> =>
  openOrCreateEventStore(logPlaceOf(name), logger);

/**
 * Errors: `position_invalid` for a text that can be no position of a log in such a place; whether it
 * is one of that log, its adapter says once it is begun after.
 */
export async function checkPositionFormat(log: LogLocation, text: string): Promise<void> {
  if ('folder' in log) return requirePositionOf(text);
  const { parsePosition } = await import('../../infra/eventstoredb/read/positions.ts');
  parsePosition(text as Position);
}
