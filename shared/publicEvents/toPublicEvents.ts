import { belongsIn, type DomainEvent } from '../eventlog/eventTypes.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import { isValidMetadata, toDomainEvent } from '../eventlog/domainEvent.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { openedEvent, type ReadableEvent } from '../eventlog/encryption/openTexts.ts';
import { streamKind } from '../eventlog/streams.ts';
import { PUBLIC_KINDS } from '../features.ts';
import type { StoredEvent } from '../ports/eventStore.ts';
import { withErasedTexts } from './erasedTexts.ts';
import type { PublicEvent } from './publicEvent.ts';
import { toPublicEvent } from './toPublicEvent.ts';

/** True for a stream whose events are public. */
export const isPublicKind = (stream: string): boolean => PUBLIC_KINDS.includes(streamKind(stream));

/** True for an event that a newer release has written; in a shared log others may write as well. */
const isOfNewerRelease = ({ stream, type, metadata }: RecordedEvent): boolean =>
  isPublicKind(stream) && belongsIn(stream, type) && isValidMetadata(metadata);

const placeOf = ({ id, stream, revision, position }: StoredEvent): string =>
  `the event ${id} (${stream} revision ${revision}, position ${position})`;

const storedData = ({ stored, data }: ReadableEvent): unknown =>
  JSON.parse(stored?.data ?? data) as unknown;

/**
 * The public view of stored events, in order, without those that are not public. Texts that were
 * erased are empty in it.
 * Errors: `configuration_invalid` for a type that a newer release has written, `event_invalid` for
 * an event that can't be understood, both with its name, `key_missing`; nothing may be published
 * past it.
 */
export function toPublicEvents(stored: readonly ReadableEvent[]): PublicEvent[] {
  return stored.flatMap((event) => {
    let recorded: RecordedEvent;
    let known: DomainEvent | undefined;
    try {
      recorded = openedEvent(event);
      known = toDomainEvent(recorded);
    } catch (error) {
      if (isTurnlogError(error, 'key_missing')) throw error;
      throw new TurnlogError(
        'event_invalid',
        `This release does not understand ${placeOf(event)}, and can't publish it.`,
        { cause: error },
      );
    }
    if (known) {
      const published = toPublicEvent(known, recorded);
      if (!published) return [];
      return event.erased ? withErasedTexts(published, storedData(event)) : published;
    }
    if (!isOfNewerRelease(recorded)) return [];
    throw new TurnlogError(
      'configuration_invalid',
      `This release does not know the type ${event.type} of ${placeOf(event)}: a newer one is to relay it.`,
    );
  });
}
