import { randomUUID } from 'node:crypto';
import type { DomainEvent } from '../../../shared/eventlog/eventTypes.ts';
import { chainEvents, NO_STREAM, type StreamHead } from '../../../shared/eventlog/append.ts';
import { withCiphertexts } from '../../../shared/eventlog/encryption/ciphertexts.ts';
import type { NewEvent } from '../../../shared/eventlog/event.ts';
import type { Position, StoredEvent } from '../../../shared/ports/eventStore.ts';
import type { AppliedUpTo } from '../../../shared/ports/readModels.ts';
import { at } from './events.ts';

interface Recording {
  stream: string;
  /** Of the metadata. */
  account?: string;
  key?: string;
  at?: string;
}

/**
 * Builds stored events as an event store would return them: chained, with dense positions after
 * `first`.
 */
export function recordHistory(first = 0) {
  const heads = new Map<string, StreamHead>();
  let last = first;
  return {
    record(
      recording: Recording,
      event: DomainEvent | Pick<NewEvent, 'type' | 'data' | 'toClose'>,
    ): StoredEvent {
      const { stream, account = 'acct_1', key = 'key_1', at: recorded_at = at(last) } = recording;
      const before = heads.get(stream) ?? NO_STREAM;
      const { encoded, head } = chainEvents(stream, before, [{ id: randomUUID(), ...event }], {
        account_id: account,
        key_id: key,
        request_id: 'request',
        causation_id: 'request',
        recorded_at,
      });
      heads.set(stream, head);
      last += 1;
      const [written] = encoded;
      if (!written) throw new Error('nothing was encoded');
      return {
        ...withCiphertexts(written, stream),
        stream,
        revision: head.revision,
        position: positionOf(last),
      };
    },
    lastPosition: (): Position => positionOf(last),
  };
}

export const positionOf = (place: number): Position => String(place).padStart(16, '0') as Position;

/** What a store is told that has applied everything up to an event at this position. */
export const reached = (position: Position): AppliedUpTo => ({
  position,
  checkpoint: { log_id: 'log_1', position, event_id: `event ${position}`, event_hash: '' },
});
