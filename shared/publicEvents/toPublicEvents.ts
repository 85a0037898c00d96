import { belongsIn, type DomainEvent } from '../eventlog/eventTypes.ts';
import { mapInSlices } from '../lib/concurrency/yieldToEventLoop.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import { isValidMetadata, toDomainEvent } from '../eventlog/domainEvent.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { decodeOpenedEvent, type ReadableEvent } from '../eventlog/encryption/openTexts.ts';
import { streamKind, streamId } from '../eventlog/streams.ts';
import { FEATURES, PUBLIC_KINDS } from '../features.ts';
import type { StoredEvent } from '../ports/eventStore.ts';
import { withErasedTexts } from './erasedTexts.ts';
import type { PublicContent, PublicEvent } from './publicEvent.ts';
import { sha256 } from '../eventlog/hashChain.ts';

type ToPublic = (event: never, id: string) => PublicContent;

/** By the type of an event, how it is published. Events of other types are internal. */
const PUBLISHED = new Map(
  FEATURES.flatMap((feature): [string, ToPublic][] =>
    'publicEvents' in feature
      ? feature.stream.events.map(({ properties: { type } }) => [
          type.const,
          feature.publicEvents.toPublic,
        ])
      : [],
  ),
);

/**
 * W3C trace context (https://www.w3.org/TR/trace-context/). All events of one request share a trace
 * id, derived from the request id, and each event has its own span. The sampled flag is not set,
 * because no tracer recorded the span.
 */
const traceparentOf = (requestId: string, eventId: string): string =>
  `00-${sha256(requestId).slice(0, 32)}-${sha256(eventId).slice(0, 16)}-00`;

/**
 * The public view of a recorded event and its domain event; undefined for an internal event.
 */
function toPublicEvent(event: DomainEvent, recorded: RecordedEvent): PublicEvent | undefined {
  const key = streamId(recorded.stream);
  const content = PUBLISHED.get(event.type)?.(event as never, key);
  if (!content) return undefined;
  const { account_id, request_id, causation_id, recorded_at } = recorded.metadata;
  return {
    ...content,
    id: recorded.id,
    key,
    time: recorded_at,
    account_id,
    revision: recorded.revision,
    position: recorded.position,
    correlation_id: request_id,
    causation_id,
    traceparent: traceparentOf(request_id, recorded.id),
  };
}

/** True for a stream whose events are public. */
export const isPublicKind = (stream: string): boolean => PUBLIC_KINDS.includes(streamKind(stream));

/**
 * True for an event of a newer release, as opposed to one of another application in a shared log.
 */
const isOfNewerRelease = ({ stream, type, metadata }: RecordedEvent): boolean =>
  isPublicKind(stream) && belongsIn(stream, type) && isValidMetadata(metadata);

const placeOf = ({ id, stream, revision, position }: StoredEvent): string =>
  `the event ${id} (${stream} revision ${revision}, position ${position})`;

const storedData = ({ stored, data }: ReadableEvent): unknown =>
  JSON.parse(stored?.data ?? data) as unknown;

/**
 * The public view of stored events, in order and without internal events. Erased texts are empty.
 * Throws `configuration_invalid` for a type of a newer release, `event_invalid` for an event that
 * cannot be decoded (both name the event), and `key_missing`. After such an error, no later event
 * may be published.
 */
export function toPublicEvents(stored: readonly ReadableEvent[]): PublicEvent[] {
  return stored.flatMap((event) => {
    let recorded: RecordedEvent;
    let domainEvent: DomainEvent | undefined;
    try {
      recorded = decodeOpenedEvent(event);
      domainEvent = toDomainEvent(recorded);
    } catch (error) {
      if (isTurnlogError(error, 'key_missing')) throw error;
      throw new TurnlogError(
        'event_invalid',
        `This release does not understand ${placeOf(event)}, and can't publish it.`,
        { cause: error },
      );
    }
    if (domainEvent) {
      const published = toPublicEvent(domainEvent, recorded);
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

/** Like toPublicEvents, for a batch of the relay: yields to the event loop after every few milliseconds. */
export const toPublicBatch = async (stored: readonly ReadableEvent[]): Promise<PublicEvent[]> =>
  (await mapInSlices('relay', stored, (event) => toPublicEvents([event]))).flat();
