import { LRUCache } from 'lru-cache';
import { entriesUpTo } from '../../../shared/lib/memory/entriesUpTo.ts';
import type { EncodedEvent, Position, StoredEvent } from '../../../shared/ports/eventStore.ts';

/** How many events are remembered. They take a few megabytes. */
const MAX_EVENTS = 20_000;
/** Longer than any of Turnlog's streams. */
const MAX_STREAM_CHARS = 200;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether a server accepts it as the id of an event. */
export const isUuid = (id: string): boolean => UUID.test(id);

export interface RecentEventIds {
  /** Skips events with ids and streams that are none of Turnlog's, and could be of any length. */
  remember(events: readonly Pick<StoredEvent, 'id' | 'stream' | 'revision'>[]): void;
  /** Records the position of an acknowledged append. */
  recordAppended(position: Position): void;
  /** Forgets a position that the log does not reach. */
  forgetAppended(position: Position): void;
  /** The highest recorded position. */
  lastAppended(): Position | undefined;
  /** Whether the id of an event is known at another location than the append would give it. */
  existElsewhere(stream: string, firstRevision: number, events: readonly EncodedEvent[]): boolean;
}

const locationOf = (stream: string, revision: number): string => `${revision}@${stream}`;

/**
 * Remembers the locations of the events that this process recently read or wrote. A server compares
 * ids only at the revision of the append, so this detects an id that is reused elsewhere.
 */
export function createRecentEventIds(): RecentEventIds {
  const locations = new LRUCache<string, string>(entriesUpTo(MAX_EVENTS));
  let lastAppended: Position | undefined;

  return {
    remember(events) {
      for (const { id, stream, revision } of events)
        if (isUuid(id) && stream.length <= MAX_STREAM_CHARS)
          locations.set(id, locationOf(stream, revision));
    },
    recordAppended(position) {
      if (lastAppended === undefined || position > lastAppended) lastAppended = position;
    },
    forgetAppended(position) {
      if (lastAppended === position) lastAppended = undefined;
    },
    lastAppended: () => lastAppended,
    existElsewhere: (stream, firstRevision, events) =>
      events.some(({ id }, index) => {
        const location = locations.peek(id);
        return location !== undefined && location !== locationOf(stream, firstRevision + index);
      }),
  };
}
