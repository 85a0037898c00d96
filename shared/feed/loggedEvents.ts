import {
  createCheckpoint,
  readLogIdentity,
  type LogIdentity,
} from '../eventlog/identity/logIdentity.ts';
import { streamKind } from '../eventlog/streams.ts';
import { bytesOf, type Checkpoint, type EventLog, type StoredEvent } from '../ports/eventStore.ts';
import { isPublicKind } from '../publicEvents/toPublicEvents.ts';

/** An event of the log that some account may be shown. */
export interface LoggedEvent {
  stored: StoredEvent;
  account_id: string;
  checkpoint: Checkpoint;
  bytes: number;
}

/** Whose event it is; nobody's where that can't be told. */
function accountOf({ metadata }: StoredEvent): string | undefined {
  try {
    const { account_id } = JSON.parse(metadata) as { account_id?: unknown };
    return typeof account_id === 'string' ? account_id : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Gives events of the log their accounts and checkpoints, and leaves out what is public for none, or
 * is not of the account where one is asked for. Errors: `store_unavailable`.
 */
export function createLoggedEvents(log: Pick<EventLog, 'firstEvent' | 'readStream'>) {
  let identity: LogIdentity | undefined;

  return async (events: readonly StoredEvent[], only?: string): Promise<LoggedEvent[]> => {
    // An event of the log's own stream may be a declaration.
    const declared = events.some(({ stream }) => streamKind(stream) === 'log');
    if (!identity || declared) identity = await readLogIdentity(log);
    const known = identity;
    if (!known) return [];
    return events.flatMap((stored) => {
      if (!isPublicKind(stored.stream)) return [];
      if (only !== undefined && !stored.metadata.includes(only)) return [];
      const account_id = accountOf(stored);
      if (account_id === undefined || (only !== undefined && account_id !== only)) return [];
      return [
        { stored, account_id, checkpoint: createCheckpoint(known, stored), bytes: bytesOf(stored) },
      ];
    });
  };
}

export type LoggedEvents = ReturnType<typeof createLoggedEvents>;
