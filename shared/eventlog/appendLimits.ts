import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { ciphertextsLength } from './encryption/ciphertexts.ts';
import { MAX_APPEND_BYTES, type EncodedEvent } from '../ports/eventStore.ts';

/**
 * What every adapter checks before it writes. Returns the size of the append: UTF-8 bytes of its
 * data, with its boxes, and metadata.
 * Errors: `event_invalid` (nothing to append, or over MAX_APPEND_BYTES), `event_id_reused` (one id
 * twice in the append).
 */
export function requireAppendable(events: readonly EncodedEvent[]): number {
  if (events.length === 0) throw new TurnlogError('event_invalid', 'There is no event to append.');
  if (new Set(events.map((event) => event.id)).size < events.length)
    throw new TurnlogError('event_id_reused', 'Two events of the append have the same id.');
  const bytes = events.reduce(
    (total, event) =>
      total +
      Buffer.byteLength(event.data) +
      ciphertextsLength(event) +
      Buffer.byteLength(event.metadata),
    0,
  );
  if (bytes > MAX_APPEND_BYTES)
    throw new TurnlogError(
      'event_invalid',
      `The events of one append take ${bytes} bytes; the limit is ${MAX_APPEND_BYTES}.`,
    );
  return bytes;
}
