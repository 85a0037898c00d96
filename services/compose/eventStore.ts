import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createDataFolder, type FolderOption } from '../../infra/sqlite/dataFolder.ts';
import { eventLogFile } from '../../infra/sqlite/eventStore/database.ts';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore/eventStore.ts';
import { openSqliteEventLog } from '../../infra/sqlite/eventStore/log.ts';
import { requirePositionForm as requireSqlitePosition } from '../../infra/sqlite/eventStore/reader.ts';
import { withCheckedPages } from '../../shared/eventlog/reading/checkedPages.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { EventLog, EventStore, Position } from '../../shared/ports/eventStore.ts';
import type { ProjectorLogger } from '../followers/projector/projection.ts';
import { locateLog, type LogLocation } from './logLocation.ts';

/** The EventStoreDB client is large, so it is loaded only if a cluster is configured. */
async function openCluster(
  { cluster: connectionString, waitMs }: Extract<LogLocation, { cluster: string }>,
  logger: Pick<ProjectorLogger, 'warn'>,
): Promise<EventStore> {
  const { openEventStoreDb } = await import('../../infra/eventstoredb/eventStore.ts');
  return openEventStoreDb({
    connectionString,
    logger,
    ...(waitMs !== undefined && { deadlineMs: waitMs }),
  });
}

/** Opens the event store at a location. */
export const openEventStore = async (
  log: LogLocation,
  logger: Pick<ProjectorLogger, 'warn'>,
): Promise<EventStore> =>
  withCheckedPages(await ('folder' in log ? openSqliteEventStore(log) : openCluster(log, logger)));

/** Opens the log at a location, for a thread that only reads. */
export const openEventLog = async (log: LogLocation, logger: ProjectorLogger): Promise<EventLog> =>
  withCheckedPages('folder' in log ? openSqliteEventLog(log) : await openCluster(log, logger));

/** Opens the event store at a location, and creates its data folder if it is missing. */
export async function openOrCreateEventStore(
  log: LogLocation,
  logger: Logger,
  option?: FolderOption,
): Promise<EventStore> {
  if ('folder' in log) createDataFolder(log.folder, option);
  return openEventStore(log, logger);
}

/** Opens the event store that an option names, and creates its data folder if it is missing. */
export const openNamedStore = (
  name: string,
  logger: Logger,
  option?: FolderOption,
): Promise<EventStore> => openOrCreateEventStore(locateLog(name), logger, option);

/** Throws `position_invalid` unless the text has the format of a position of that kind of log. */
export async function checkPositionFormat(log: LogLocation, text: string): Promise<void> {
  if ('folder' in log) return requireSqlitePosition(text);
  const { parsePosition } = await import('../../infra/eventstoredb/read/positions.ts');
  parsePosition(text as Position);
}

/** The name of a store in messages: the data folder, or the hosts of a cluster without credentials. */
const displayName = (name: string): string =>
  /^((?:esdb|kurrentdb)[^/]*\/\/)(?:[^/?]*@)?([^/?]*)/.exec(name)?.slice(1).join('') ?? name;

/** Throws `configuration_invalid` if the folder has no event log. Creates nothing. */
export function requireLogFolder(folder: string, instruction: string): void {
  const path = resolve(folder);
  if (existsSync(eventLogFile(path))) return;
  throw new TurnlogError(
    'configuration_invalid',
    `There is no event log in ${path}. ${instruction}`,
  );
}

/** Throws `configuration_invalid` if the log of a cluster is empty. */
export async function requireNonEmptyLog(
  log: Pick<EventLog, 'firstEvent'>,
  name: string,
  instruction: string,
): Promise<void> {
  if (await log.firstEvent()) return;
  throw new TurnlogError(
    'configuration_invalid',
    `The event log in ${displayName(name)} is empty. ${instruction}`,
  );
}
