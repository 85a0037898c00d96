import {
  createCheckpoint,
  readLogIdentity,
  type LogIdentity,
} from '../eventlog/identity/logIdentity.ts';
import { streamKind } from '../eventlog/streams.ts';
import { bytesOf, type Checkpoint, type EventLog, type StoredEvent } from '../ports/eventStore.ts';
import { isPublicKind } from '../publicEvents/toPublicEvents.ts';

/** A logged event that some account may see. */
export interface LoggedEvent {
  stored: StoredEvent;
  account_id: string;
  checkpoint: Checkpoint;
  bytes: number;
}

/** The account of an event; undefined if its metadata names none. */
function accountOf({ metadata }: StoredEvent): string | undefined {
  try {
    const { account_id } = JSON.parse(metadata) as { account_id?: unknown };
    return typeof account_id === 'string' ? account_id : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Adds accounts and checkpoints to events of the log. Omits events that are not public, and events
 * of other accounts when `onlyAccountId` is given.
 */
export function createLoggedEvents(log: Pick<EventLog, 'firstEvent' | 'readStream'>) {
  let identity: LogIdentity | undefined;

  return async (events: readonly StoredEvent[], onlyAccountId?: string): Promise<LoggedEvent[]> => {
    // An event in the log's own stream may declare that the log was restored.
    const declared = events.some(({ stream }) => streamKind(stream) === 'log');
    if (!identity || declared) identity = await readLogIdentity(log);
    const logIdentity = identity;
    if (!logIdentity) return [];
    return events.flatMap((stored) => {
      if (!isPublicKind(stored.stream)) return [];
      if (onlyAccountId !== undefined && !stored.metadata.includes(onlyAccountId)) return [];
      const account_id = accountOf(stored);
      if (account_id === undefined || (onlyAccountId !== undefined && account_id !== onlyAccountId))
        return [];
      return [
        {
          stored,
          account_id,
          checkpoint: createCheckpoint(logIdentity, stored),
          bytes: bytesOf(stored),
        },
      ];
    });
  };
}

export type LoggedEvents = ReturnType<typeof createLoggedEvents>;
