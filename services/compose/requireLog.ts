import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { eventLogFile } from '../../infra/sqlite/eventStore/database.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { EventLog } from '../../shared/ports/eventStore.ts';

/** True for a connection string; anything else names a data folder. */
export const isCluster = (name: string): boolean => /^esdb(\+discover)?:/.test(name);

/** How a store is told of: a data folder as it was named, a cluster by its hosts alone. */
const namedForPeople = (name: string): string =>
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
    `The event log in ${namedForPeople(name)} is empty. ${whatToDo}`,
  );
}
