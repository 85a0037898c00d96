/**
 * Encrypts the texts of events just before they are stored. No hash covers ciphertexts, so the
 * adapter encrypts last, in batches, on a separate thread if it has one.
 */
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { EncodedEvent } from '../../ports/eventStore.ts';
import { ciphertextLength, createTextEncrypter } from './protectedText.ts';

const BOX_MEMBER_CHARS = '"box":"",'.length;

/** The bytes that ciphertexts add to the data. */
export const ciphertextsLength = ({ toClose }: Pick<EncodedEvent, 'toClose'>): number =>
  toClose?.texts.reduce((sum, { text }) => sum + BOX_MEMBER_CHARS + ciphertextLength(text), 0) ?? 0;

/**
 * The event as it is stored, with ciphertexts. Throws `event_invalid` when the data lacks a
 * commitment.
 */
export function withCiphertexts({ toClose, ...event }: EncodedEvent, stream: string): EncodedEvent {
  if (!toClose) return event;
  const { texts, key } = toClose;
  const closeText = createTextEncrypter(key, stream);
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
