import { resolve } from 'node:path';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore.ts';
import { openSqliteEventLog } from '../../infra/sqlite/eventStoreLog.ts';
import type { Logger } from '../../shared/logger.ts';
import type { EventLog, EventStore } from '../../shared/ports/eventStore.ts';
import type { ProjectorLogger } from '../projector/projection.ts';
import { makeDataFolder, type LogPlace } from './place.ts';

/** The client of EventStoreDB is large: it is loaded only where one is configured. */
async function openCluster(
  connectionString: string,
  logger: Pick<ProjectorLogger, 'warn'>,
): Promise<EventStore> {
  const { openEventStoreDb } = await import('../../infra/eventstoredb/eventStore.ts');
  return openEventStoreDb({ connectionString, logger });
}

/** The event store of a place. Errors: those of its adapter. */
export const openEventStore = (log: LogPlace, logger: Logger): Promise<EventStore> =>
  'folder' in log ? openSqliteEventStore(log) : openCluster(log.cluster, logger);

/** The same for a thread that only reads. */
export const openEventLog = async (log: LogPlace, logger: ProjectorLogger): Promise<EventLog> =>
  'folder' in log ? openSqliteEventLog(log) : openCluster(log.cluster, logger);

/**
 * A store by its name: a connection string, or the data folder of an embedded one. Errors: those of
 * its adapter.
 */
export async function openNamedStore(name: string, logger: Logger): Promise<EventStore> {
  if (/^esdb(\+discover)?:/.test(name)) return openEventStore({ cluster: name }, logger);
  const folder = resolve(name);
  makeDataFolder(folder);
  return openEventStore({ folder }, logger);
}
