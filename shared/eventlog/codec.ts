import type { EncodedEvent, StoredEvent } from '../ports/eventStore.ts';
import type { EventMetadata, NewEvent, RecordedEvent } from './event.ts';

/** Encodes an event for a store. Data is canonical JSON, which the hash chain needs anyway. */
export const encodeEvent = (
  event: NewEvent,
  canonicalData: string,
  metadata: EventMetadata,
): EncodedEvent => ({
  id: event.id,
  type: event.type,
  data: canonicalData,
  metadata: JSON.stringify(metadata),
  ...(event.toClose && { toClose: event.toClose }),
});

/** Decodes an event that a store returned. Throws SyntaxError when the stored text is not JSON. */
export const decodeEvent = (stored: StoredEvent): RecordedEvent => ({
  id: stored.id,
  stream: stored.stream,
  revision: stored.revision,
  position: stored.position,
  type: stored.type,
  data: JSON.parse(stored.data) as unknown,
  metadata: JSON.parse(stored.metadata) as EventMetadata,
});
