import { isErasure } from '../eventTypes.ts';
import type { EventLog, EventStore, StoredEvent } from '../../ports/eventStore.ts';
import type { Keyring } from './keyring.ts';
import { openTexts, type ReadableEvent } from './openTexts.ts';
import { createErasureLookup } from '../reading/erasureLookup.ts';
import { streamKind } from '../streams.ts';

/** An event store and the keys of its texts. Its events are as stored. */
export type ProtectedStore = EventStore & { keys: Keyring };

/** The keys that an erasure lists as destroyed; none when it can't be decoded. */
export function keysNamedBy({ data }: Pick<StoredEvent, 'data'>): string[] {
  try {
    const { key_ids } = JSON.parse(data) as { key_ids?: unknown };
    return Array.isArray(key_ids) ? key_ids.filter((id) => typeof id === 'string') : [];
  } catch {
    return [];
  }
}

type Followed = Pick<EventLog, 'subscribe' | 'readStream'>;
type KeysToOpen = Pick<Keyring, 'find' | 'isErased' | 'evict'>;

/**
 * A log whose subscriptions deliver decrypted texts (ReadableEvent). They also fail with
 * `store_unavailable` when the keys can't be reached.
 */
export const withOpenTexts = <Log extends Followed>(log: Log, keys: KeysToOpen): Log =>
  withTexts(log, keys);

/** The stream kinds whose rows hold encrypted texts, like the log. */
const CLOSED_IN_ROWS = ['replay', 'session', 'webhook'];

/**
 * The log as the projector reads it: the texts of sessions and webhooks stay encrypted
 * (closedText.ts), except titles and labels of sessions, which lists show and search.
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
  const { isErasedNow } = createErasureLookup(log);

  async function openBatch(stored: readonly StoredEvent[]): Promise<ReadableEvent[]> {
    const events = await openTexts(keys, stored, staysClosed);
    for (const event of events)
      if (event.erased && !(await isErasedNow(event.stream))) event.unsaid = true;
    return events;
  }

  return {
    ...log,
    async *subscribe(options: Parameters<EventLog['subscribe']>[0]) {
      for await (const batch of log.subscribe(options)) {
        for (const event of batch.events)
          if (isErasure(event.type)) keys.evict(event.stream, keysNamedBy(event));
        yield { ...batch, events: await openBatch(batch.events) };
      }
    },
  };
}
