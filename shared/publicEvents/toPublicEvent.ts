import type { DomainEvent } from '../eventlog/eventTypes.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { sha256 } from '../eventlog/hashChain.ts';
import { streamId } from '../eventlog/streams.ts';
import { contentOf } from './publicContent.ts';
import type { PublicEvent } from './publicEvent.ts';

/**
 * W3C trace context (https://www.w3.org/TR/trace-context/): everything that one request led to has
 * one trace id, derived from the request's id, and every event its own span. Not sampled, because
 * no tracer recorded the span.
 */
const traceparentOf = (requestId: string, eventId: string): string =>
  `00-${sha256(requestId).slice(0, 32)}-${sha256(eventId).slice(0, 16)}-00`;

/**
 * The public view of a recorded event, given what the domain makes of it; undefined for what is not
 * relayed.
 */
export function toPublicEvent(
  event: DomainEvent,
  recorded: RecordedEvent,
): PublicEvent | undefined {
  const key = streamId(recorded.stream);
  const content = contentOf(event, key);
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
