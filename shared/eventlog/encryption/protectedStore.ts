import { isErasure } from '../eventTypes.ts';
import type { EventLog, EventStore, StoredEvent } from '../../ports/eventStore.ts';
import type { Keyring } from './keyring.ts';
import { openTexts, type ReadableEvent } from './openTexts.ts';
import { createErasureLookup } from '../reading/erasureLookup.ts';
import { streamKind } from '../streams.ts';

/** An event store, with the keys of the texts in it. Events pass it as they are stored. */
export type ProtectedStore = EventStore & { keys: Keyring };

/** The keys that an event says are destroyed; none where it can't be understood. */
function keysErasedBy({ type, data }: StoredEvent): string[] {
  if (!isErasure(type)) return [];
  try {
    const { key_ids } = JSON.parse(data) as { key_ids?: unknown };
    return Array.isArray(key_ids) ? (key_ids as string[]) : [];
  } catch {
    return [];
  }
}

type Followed = Pick<EventLog, 'subscribe' | 'readStream'>;
type KeysToOpen = Pick<Keyring, 'find' | 'evict'>;

/**
 * A log as its followers read it: texts stand open in the data of the events (ReadableEvent).
 * Errors of its subscriptions, beside the log's: `store_unavailable` where keys can't be reached.
 */
export const withOpenTexts = <Log extends Followed>(log: Log, keys: KeysToOpen): Log =>
  withTexts(log, keys);

/** Of these the rows hold texts as the log does. */
const CLOSED_IN_ROWS = ['replay', 'session', 'webhook'];

/**
 * The same as read models are filled with it: the texts of sessions and webhooks stay closed
 * (closedText.ts), but for titles and labels of sessions, which lists show and find.
 */
export const withTextsForRows = <Log extends Followed>(log: Log, keys: KeysToOpen): Log =>
  withTexts(
    log,
    keys,
    ({ stream, type }) =>
      CLOSED_IN_ROWS.includes(streamKind(stream)) && type !== 'session.described.v1',
  );

function withTexts<Log extends Followed>(
  log: Log,
  keys: KeysToOpen,
  staysClosed?: (event: StoredEvent) => boolean,
): Log {
  const saysErased = createErasureLookup(log);

  async function opened(stored: readonly StoredEvent[]): Promise<ReadableEvent[]> {
    const events = await openTexts(keys, stored, staysClosed);
    for (const event of events)
      if (event.erased && !(await saysErased(event.stream))) event.unsaid = true;
    return events;
  }

  return {
    ...log,
    async *subscribe(options: Parameters<EventLog['subscribe']>[0]) {
      for await (const batch of log.subscribe(options)) {
        yield { ...batch, events: await opened(batch.events) };
        for (const event of batch.events) keys.evict(keysErasedBy(event));
      }
    },
  };
}
