import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createDataFolder } from '../../infra/sqlite/dataFolder.ts';
import { eventLogFile } from '../../infra/sqlite/eventStore/database.ts';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore/eventStore.ts';
import { openSqliteEventLog } from '../../infra/sqlite/eventStore/log.ts';
import { requirePositionForm as requirePositionOf } from '../../infra/sqlite/eventStore/reader.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { EventLog, EventStore, Position } from '../../shared/ports/eventStore.ts';
import type { ProjectorLogger } from '../followers/projector/projection.ts';
import { locateLog, type LogLocation } from './logLocation.ts';

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
  openOrCreateEventStore(locateLog(name), logger);

/**
 * Errors: `position_invalid` for a text that can be no position of a log in such a place; whether it
 * is one of that log, its adapter says once it is begun after.
 */
export async function checkPositionFormat(log: LogLocation, text: string): Promise<void> {
  if ('folder' in log) return requirePositionOf(text);
  const { parsePosition } = await import('../../infra/eventstoredb/read/positions.ts');
  parsePosition(text as Position);
}

/** How a store is told of: a data folder as it was named, a cluster by its hosts alone. */
const displayName = (name: string): string =>
  /^(esdb[^/]*\/\/)(?:[^/?]*@)?([^/?]*)/.exec(name)?.slice(1).join('') ?? name;

/** Errors: `configuration_invalid` where the folder has no event log. Makes nothing. */
export function requireLogFolder(folder: string, whatToDo: string): void {
  if (existsSync(eventLogFile(resolve(folder)))) return;
  throw new TurnlogError(
    'configuration_invalid',
    `There is no event log in ${folder}. ${whatToDo}`,
  );
}

/** Errors: `configuration_invalid` where the log of a cluster is empty; `store_unavailable`. */
export async function requireNonEmptyLog(
  log: Pick<EventLog, 'firstEvent'>,
  name: string,
  whatToDo: string,
): Promise<void> {
  if (await log.firstEvent()) return;
  throw new TurnlogError(
    'configuration_invalid',
    `The event log in ${displayName(name)} is empty. ${whatToDo}`,
  );
}
