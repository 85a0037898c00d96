import type { EncodedEvent, Position, StoredEvent } from '../../../shared/ports/eventStore.ts';

/** How many events are remembered. They take a few megabytes. */
const MAX_EVENTS = 20_000;

export interface RecentEventIds {
  remember(events: readonly Pick<StoredEvent, 'id' | 'stream' | 'revision'>[]): void;
  /** Records the position of an acknowledged append. */
  recordAppended(position: Position): void;
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
  const locations = new Map<string, string>();
  let lastAppended: Position | undefined;

  return {
    remember(events) {
      for (const { id, stream, revision } of events) {
        locations.delete(id);
        locations.set(id, locationOf(stream, revision));
      }
      // A Map iterates in insertion order, so the first ids are the least recently seen.
      for (const id of locations.keys()) {
        if (locations.size <= MAX_EVENTS) break;
        locations.delete(id);
      }
    },
    recordAppended(position) {
      if (lastAppended === undefined || position > lastAppended) lastAppended = position;
    },
    lastAppended: () => lastAppended,
    existElsewhere: (stream, firstRevision, events) =>
      events.some(({ id }, index) => {
        const location = locations.get(id);
        return location !== undefined && location !== locationOf(stream, firstRevision + index);
      }),
  };
}
