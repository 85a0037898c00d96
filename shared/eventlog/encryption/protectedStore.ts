import { LRUCache } from 'lru-cache';
import { entriesUpTo } from '../../lib/memory/entriesUpTo.ts';
import { isErasure } from '../eventTypes.ts';
import type { EventLog, EventStore, StoredEvent } from '../../ports/eventStore.ts';
import type { Keyring, ReadingKeys } from './keyring.ts';
import { decryptTextsInData, type ReadableEvent } from './openTexts.ts';
import { createErasureLookup, REMEMBERED_STREAMS } from '../reading/erasureLookup.ts';
import { streamKind } from '../streams.ts';
import type { LeafComparison } from '../../transparency/leaves/leafComparison.ts';

/**
 * An event store, the keys of its texts, and the comparison of its events with their leaves where
 * there is one. Its events are as stored.
 */
export type ProtectedStore = EventStore & {
  keys: Keyring;
  leaves?: LeafComparison;
  /**
   * Refuses events that the limits of storage would refuse, before keys are made for them. Their
   * size is at least `bytes`. Absent where there are no such limits.
   */
  requireRoom?: (
    accountId: string,
    events: readonly { type: string; data: object }[],
    bytes: number,
  ) => Promise<void>;
};

/**
 * Compares events of a store with their leaves when their streams are read, and notes its appends: whether a
 * stream is erased is then known without reading it.
 */
export const withLeaves = (store: ProtectedStore, leaves: LeafComparison): ProtectedStore => ({
  ...store,
  leaves,
  async append(stream, expected, events) {
    const result = await store.append(stream, expected, events);
    leaves.appended(stream, result.revision, events);
    store.keys.noteLastEvent(stream, events.at(-1)!.type);
    return result;
  },
});

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
type KeysToOpen = Pick<Keyring, 'find' | 'isErased' | 'evict' | 'noteLastEvent'>;

/**
 * A log whose subscriptions deliver decrypted texts (ReadableEvent). They also fail with
 * `store_unavailable` when the keys can't be reached.
 */
export const withOpenTexts = <Log extends Followed>(log: Log, keys: KeysToOpen): Log =>
  withTexts(log, keys);

/** The stream kinds whose rows hold encrypted texts, like the log. */
const CLOSED_IN_ROWS = ['replay', 'session', 'webhook'];

/** Titles and labels of sessions are not encrypted in rows, because lists show and search them. */
const OPEN_IN_ROWS = ['session.described.v1'];

const staysClosedInRows = ({ stream, type }: StoredEvent): boolean =>
  CLOSED_IN_ROWS.includes(streamKind(stream)) && !OPEN_IN_ROWS.includes(type);

/**
 * The log as the projector reads it: the texts of sessions and webhooks stay encrypted
 * (encryptedText.ts), except titles and labels of sessions.
 */
export const withTextsForRows = <Log extends Followed>(log: Log, keys: KeysToOpen): Log =>
  withTexts(log, keys, staysClosedInRows);

/** Returns a function that opens events of one stream as the projector reads them. */
export const textsForRows =
  (log: Pick<EventLog, 'readStream'>, keys: ReadingKeys) =>
  (events: readonly StoredEvent[]): Promise<ReadableEvent[]> =>
    openBatch(events, {
      keys,
      staysClosed: staysClosedInRows,
      isErased: createErasureLookup(log).isErasedNow,
    });

interface Opening {
  keys: ReadingKeys;
  staysClosed: ((event: StoredEvent) => boolean) | undefined;
  isErased: (stream: string) => Promise<boolean>;
}

async function openBatch(
  stored: readonly StoredEvent[],
  { keys, staysClosed, isErased }: Opening,
): Promise<ReadableEvent[]> {
  const events = await decryptTextsInData(keys, stored, { staysClosed });
  for (const event of events)
    if (event.erased && !(await isErased(event.stream))) event.unsaid = true;
  return events;
}

function withTexts<Log extends Followed>(
  log: Log,
  keys: KeysToOpen,
  staysClosed?: (event: StoredEvent) => boolean,
): Log {
  const opening = { keys, staysClosed, isErased: createErasureLookup(log).isErasedNow };
  return {
    ...log,
    async *subscribe(options: Parameters<EventLog['subscribe']>[0]) {
      /** The types of the latest events by stream; an erasure may follow until the end of the log. */
      const latest = new LRUCache<string, string>(entriesUpTo(REMEMBERED_STREAMS));
      for await (const batch of log.subscribe(options)) {
        for (const event of batch.events) {
          if (isErasure(event.type)) {
            latest.delete(event.stream);
            keys.evict(event.stream, keysNamedBy(event));
          } else latest.set(event.stream, event.type);
        }
        if (batch.caughtUp) {
          // These are the last events of their streams, which need not be read then.
          latest.rforEach((type, stream) => keys.noteLastEvent(stream, type));
          latest.clear();
        }
        yield { ...batch, events: await openBatch(batch.events, opening) };
      }
    },
  };
}
