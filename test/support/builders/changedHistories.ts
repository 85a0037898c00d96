import { randomUUID } from 'node:crypto';
import { NO_STREAM, type StreamHead } from '../../../shared/eventlog/append.ts';
import { chainStored } from './chainStored.ts';
import type { EventMetadata } from '../../../shared/eventlog/event.ts';
import type { EncodedEvent, EventStore, StoredEvent } from '../../../shared/ports/eventStore.ts';

const encoded = ({ id, type, data, metadata }: StoredEvent): EncodedEvent => ({
  id,
  type,
  data,
  metadata,
});

/** Appends events as they are, one by one, each to its place in its stream. */
export async function appendAll(store: EventStore, events: readonly StoredEvent[]): Promise<void> {
  for (const event of events)
    await store.append(event.stream, event.revision === 0 ? 'no_stream' : event.revision - 1, [
      encoded(event),
    ]);
}

const metadataOf = ({ metadata }: StoredEvent): EventMetadata =>
  JSON.parse(metadata) as EventMetadata;

/**
 * Appends, to a log that holds the events before them, events that say the same but are others: what
 * a log becomes that goes on from an older copy.
 */
export async function appendOthers(
  store: EventStore,
  before: readonly StoredEvent[],
  events: readonly StoredEvent[],
): Promise<void> {
  const heads = new Map<string, StreamHead>();
  for (const event of before)
    heads.set(event.stream, { revision: event.revision, hash: metadataOf(event).hash });
  for (const event of events) {
    const head = heads.get(event.stream) ?? NO_STREAM;
    const { prev_hash: _prev, hash: _hash, ...authorship } = metadataOf(event);
    const said = { id: randomUUID(), type: event.type, data: JSON.parse(event.data) as object };
    const chained = chainStored(event.stream, head, said, authorship);
    const expected = head.revision < 0 ? 'no_stream' : head.revision;
    await store.append(event.stream, expected, [chained.event]);
    heads.set(event.stream, chained.head);
  }
}
