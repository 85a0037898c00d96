import { isErasure } from '../domain/events.ts';
import type { EventLog, EventStore, StoredEvent } from '../ports/eventStore.ts';
import type { Keyring } from './keyring.ts';
import { openTexts } from './openTexts.ts';

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

/**
 * A log as its followers read it: texts stand open in the data of the events (ReadableEvent).
 * Errors of its subscriptions, beside the log's: `store_unavailable` where keys can't be reached.
 */
export const withOpenTexts = <Log extends Pick<EventLog, 'subscribe'>>(
  log: Log,
  keys: Pick<Keyring, 'find' | 'forget'>,
): Log => ({
  ...log,
  async *subscribe(options: Parameters<EventLog['subscribe']>[0]) {
    for await (const batch of log.subscribe(options)) {
      yield { ...batch, events: await openTexts(keys, batch.events) };
      for (const event of batch.events) keys.forget(keysErasedBy(event));
    }
  },
});
