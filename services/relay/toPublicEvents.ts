import { isTurnlogError, TurnlogError } from '../../shared/errors.ts';
import type { DomainEvent } from '../../shared/domain/events.ts';
import { metadataFits, toDomainEvent } from '../../shared/eventlog/domainEvent.ts';
import type { RecordedEvent } from '../../shared/eventlog/event.ts';
import { openedEvent, type ReadableEvent } from '../../shared/eventlog/openTexts.ts';
import { belongsIn, streamKind } from '../../shared/eventlog/streams.ts';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import { withErasedTexts } from '../../shared/publicEvents/erasedTexts.ts';
import type { PublicEvent } from '../../shared/publicEvents/publicEvent.ts';
import { toPublicEvent } from '../../shared/publicEvents/toPublicEvent.ts';

/** The kinds of streams whose events are public. */
const PUBLIC_KINDS = ['agent', 'session'];

/** True for an event that a newer release has written; in a shared log others may write as well. */
const isOfNewerRelease = ({ stream, type, metadata }: RecordedEvent): boolean =>
  PUBLIC_KINDS.includes(streamKind(stream)) && belongsIn(stream, type) && metadataFits(metadata);

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
