import type { EventLog, EventStore } from '../ports/eventStore.ts';
import type { Keyring } from './keyring.ts';
import { openTexts } from './openTexts.ts';

/** An event store, with the keys of the texts in it. Events pass it as they are stored. */
export type ProtectedStore = EventStore & { keys: Keyring };

/**
 * A log as its followers read it: texts stand open in the data of the events (ReadableEvent).
 * Errors of its subscriptions, beside the log's: `store_unavailable` where keys can't be reached.
 */
export const withOpenTexts = <Log extends Pick<EventLog, 'subscribe'>>(
  log: Log,
  keys: Pick<Keyring, 'find'>,
): Log => ({
  ...log,
  async *subscribe(options: Parameters<EventLog['subscribe']>[0]) {
    for await (const batch of log.subscribe(options))
      yield { ...batch, events: await openTexts(keys, batch.events) };
  },
});
