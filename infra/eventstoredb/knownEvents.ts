import type { EncodedEvent, Position, StoredEvent } from '../../shared/ports/eventStore.ts';

/** How many events are remembered: some megabytes. */
const REMEMBERED = 20_000;

export interface KnownEvents {
  note(events: readonly Pick<StoredEvent, 'id' | 'stream' | 'revision'>[]): void;
  /** Notes the position of an append that was acknowledged. */
  written(position: Position): void;
  /** The latest one of those. */
  lastWritten(): Position | undefined;
  /** True when one of the ids is known to stand elsewhere than where the append would put it. */
  standElsewhere(stream: string, first: number, events: readonly EncodedEvent[]): boolean;
}

const place = (stream: string, revision: number): string => `${revision}@${stream}`;

/**
 * Where the events stand that were lately written or read here. A server compares ids only at the
 * place of the append, so this is what tells that an id is used a second time somewhere else.
 */
export function createKnownEvents(): KnownEvents {
  const places = new Map<string, string>();
  let last: Position | undefined;

  return {
    note(events) {
      for (const { id, stream, revision } of events) {
        places.delete(id);
        places.set(id, place(stream, revision));
      }
      // A Map hands out its keys in order of insertion: the first ones are the longest unseen.
      for (const id of places.keys()) {
        if (places.size <= REMEMBERED) break;
        places.delete(id);
      }
    },
    written(position) {
      if (last === undefined || position > last) last = position;
    },
    lastWritten: () => last,
    standElsewhere: (stream, first, events) =>
      events.some(({ id }, index) => {
        const known = places.get(id);
        return known !== undefined && known !== place(stream, first + index);
      }),
  };
}
