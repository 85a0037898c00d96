import { join } from 'node:path';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore.ts';
import { openSqliteEventLog } from '../../infra/sqlite/eventStoreLog.ts';
import { sha256 } from '../../shared/eventlog/hashChain.ts';
import type { ProjectorLogger } from '../projector/runProjection.ts';
import type { Logger } from '../../shared/logger.ts';
import type { EventLog, EventStore } from '../../shared/ports/eventStore.ts';

/** Where a service's log and read models are; plain data, so that it can be handed to a thread. */
export interface Place {
  dataFolder: string;
  /** Of the cluster that keeps the log; the log is in the data folder when absent. */
  eventStoreDbUrl: string | undefined;
}

/** The client of EventStoreDB is large: it is loaded only where one is configured. */
async function openCluster(
  connectionString: string,
  logger: Pick<ProjectorLogger, 'warn'>,
): Promise<EventStore> {
  const { openEventStoreDb } = await import('../../infra/eventstoredb/eventStore.ts');
  return openEventStoreDb({ connectionString, logger });
}

/** The configured event store. Errors: those of its adapter. */
export const openEventStore = (
  { dataFolder, eventStoreDbUrl }: Place,
  logger: Logger,
): Promise<EventStore> =>
  eventStoreDbUrl === undefined
    ? openSqliteEventStore({ folder: dataFolder })
    : openCluster(eventStoreDbUrl, logger);

/** The same for a thread that only reads. */
export const openEventLog = async (
  { dataFolder, eventStoreDbUrl }: Place,
  logger: ProjectorLogger,
): Promise<EventLog> =>
  eventStoreDbUrl === undefined
    ? openSqliteEventLog({ folder: dataFolder })
    : openCluster(eventStoreDbUrl, logger);

/**
 * The folder of the read models of this log. A checkpoint means nothing in another log, so those of a cluster have a folder
 * named by its hosts.
 */
export function readModelsFolder({ dataFolder, eventStoreDbUrl }: Place): string {
  if (eventStoreDbUrl === undefined) return dataFolder;
  const hosts = /^[^/]*\/\/(?:[^@/]*@)?([^/?]*)/.exec(eventStoreDbUrl)?.[1] ?? '';
  return join(dataFolder, `eventstoredb-${sha256(hosts).slice(0, 12)}`);
}
