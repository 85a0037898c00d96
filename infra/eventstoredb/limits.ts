import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { requireAppendable } from '../../shared/eventlog/appendLimits.ts';
import type { EncodedEvent, ExpectedRevision } from '../../shared/ports/eventStore.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A server's own limit of an append, by default (`MaxAppendSize`). */
const SERVER_LIMIT_BYTES = 1024 * 1024;

/**
 * A server counts an event's type as two bytes a character, beside data and metadata
 * (`Event.SizeOnDisk` in EventStore.Core).
 */
const BYTES_PER_TYPE_CHARACTER = 2;

const invalid = (message: string): TurnlogError => new TurnlogError('event_invalid', message);

/**
 * Refuses what a server would refuse, or would take and never give back as it was.
 * Errors: those of requireAppendable; `event_invalid` also for a type or id that a server refuses,
 * for a size that is over the limit only as a server counts it, and for revisions that JavaScript
 * can't count.
 */
export function requireWritable(expected: ExpectedRevision, events: readonly EncodedEvent[]): void {
  const bytes = requireAppendable(events);
  for (const { id, type } of events) {
    if (!UUID.test(id)) throw invalid('The id of an event must be a UUID.');
    if (type === '' || type.startsWith('$'))
      throw invalid(
        'The type of an event must not be empty, nor begin with "$", which EventStoreDB keeps for itself.',
      );
  }
  const counted =
    bytes + events.reduce((sum, { type }) => sum + type.length * BYTES_PER_TYPE_CHARACTER, 0);
  if (counted > SERVER_LIMIT_BYTES)
    throw invalid(
      `The events of one append take ${counted} bytes in EventStoreDB; the limit is ${SERVER_LIMIT_BYTES}.`,
    );
  const before = expected === 'no_stream' ? -1 : expected;
  if (!Number.isSafeInteger(before + events.length) || before < -1)
    throw invalid(`No event can follow revision ${before}.`);
}
