/**
 * The boxes of events on their way into a store. No hash covers them, so that they are made last: by
 * the adapter, on a thread that nobody waits for where it has one, many at a time.
 */
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { EncodedEvent } from '../../ports/eventStore.ts';
import { ciphertextLength, createTextCloser } from './protectedText.ts';

/** What a box adds to a commitment. */
const BESIDE_BOX = '"box":"",'.length;

/** Bytes that the boxes add to the data. */
export const ciphertextsLength = ({ toClose }: Pick<EncodedEvent, 'toClose'>): number =>
  toClose?.texts.reduce((sum, { text }) => sum + BESIDE_BOX + ciphertextLength(text), 0) ?? 0;

/** The event as a stream stores it. Errors: `event_invalid` where a commitment does not stand in the data. */
export function withCiphertexts({ toClose, ...event }: EncodedEvent, stream: string): EncodedEvent {
  if (!toClose) return event;
  const { texts, key } = toClose;
  const closeText = createTextCloser(key, stream);
  let { data } = event;
  for (const text of texts) {
    const committed = `{"sha256":"${text.sha256}"}`;
    const at = data.indexOf(committed);
    if (at < 0)
      throw new TurnlogError('event_invalid', `The event ${event.id} does not commit to its text.`);
    data = `${data.slice(0, at)}{"box":"${closeText(text)}",${committed.slice(1)}${data.slice(at + committed.length)}`;
  }
  return { ...event, data };
}
