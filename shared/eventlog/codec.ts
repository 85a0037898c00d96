import type { EncodedEvent, StoredEvent } from '../ports/eventStore.ts';
import type { EventMetadata, NewEvent, RecordedEvent } from './event.ts';

/**
 * Where events become bytes and bytes events: every event passes here exactly once on its way into
 * and out of a store. Data is kept in canonical form because the hash chain needs that text anyway.
 */
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

/** Errors: SyntaxError when the stored text is not JSON. */
export const decodeEvent = (stored: StoredEvent): RecordedEvent => ({
  id: stored.id,
  stream: stored.stream,
  revision: stored.revision,
  position: stored.position,
  type: stored.type,
  data: JSON.parse(stored.data) as unknown,
  metadata: JSON.parse(stored.metadata) as EventMetadata,
});
