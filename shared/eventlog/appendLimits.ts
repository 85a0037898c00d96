import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { ciphertextsLength } from './encryption/ciphertexts.ts';
import { MAX_APPEND_BYTES, type EncodedEvent } from '../ports/eventStore.ts';

/** The size of an append in bytes: data including ciphertexts, and metadata. */
export const appendBytes = (events: readonly EncodedEvent[]): number =>
  events.reduce(
    (total, event) =>
      total +
      Buffer.byteLength(event.data) +
      ciphertextsLength(event) +
      Buffer.byteLength(event.metadata),
    0,
  );

/**
 * The check that every adapter makes before it writes. Returns the append's size (appendBytes).
 * Throws `event_invalid` for an empty append or one over
 * MAX_APPEND_BYTES, `event_id_reused` for an id that occurs twice.
 */
export function requireAppendable(events: readonly EncodedEvent[]): number {
  if (events.length === 0) throw new TurnlogError('event_invalid', 'The append has no events.');
  if (new Set(events.map((event) => event.id)).size < events.length)
    throw new TurnlogError('event_id_reused', 'Two events of the append have the same id.');
  const bytes = appendBytes(events);
  if (bytes > MAX_APPEND_BYTES)
    throw new TurnlogError(
      'event_invalid',
      `The events of one append take ${bytes} bytes; the limit is ${MAX_APPEND_BYTES}.`,
    );
  return bytes;
}
