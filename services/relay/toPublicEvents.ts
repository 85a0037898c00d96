import { TurnlogError } from '../../shared/errors.ts';
import { decodeEvent } from '../../shared/eventlog/codec.ts';
import { toDomainEvent } from '../../shared/eventlog/domainEvent.ts';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import type { PublicEvent } from '../../shared/publicEvents/publicEvent.ts';
import { toPublicEvent } from '../../shared/publicEvents/toPublicEvent.ts';

/**
 * The public view of stored events, in order, without those that are not public or not known.
 * Errors: `event_invalid`, which names the event, when one can't be understood; nothing may be published
 * past it.
 */
export function toPublicEvents(stored: readonly StoredEvent[]): PublicEvent[] {
  return stored.flatMap((event) => {
    try {
      const recorded = decodeEvent(event);
      const known = toDomainEvent(recorded);
      return (known && toPublicEvent(known, recorded)) ?? [];
    } catch (error) {
      throw new TurnlogError(
        'event_invalid',
        `The event ${event.id} (${event.stream} revision ${event.revision}, position ${event.position}) can't be published: this release does not understand it.`,
        { cause: error },
      );
    }
  });
}
