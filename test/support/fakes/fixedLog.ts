import { once } from 'node:events';
import { createCheckpointTracker } from '../../../shared/eventlog/identity/logIdentity.ts';
import { positionBeyondEndError } from '../../../shared/eventlog/identity/positions.ts';
import type { EventLog, StoredEvent } from '../../../shared/ports/eventStore.ts';
import { memoryReads } from './memoryReads.ts';

export type FixedLog = Omit<EventLog, 'trouble' | 'close'>;

/**
 * A log of fixed events, at most so many in a batch, that refuses what lies beyond them, and then
 * stays silent. Other events may be put in place of them.
 */
export function fixedLog(events: readonly StoredEvent[], largestBatch = Infinity): FixedLog {
  const reads = {
    head: async () => events.at(-1)?.position,
    firstEvent: async () => events[0],
    eventAt: async (position: string) => events.find((event) => event.position === position),
    ...memoryReads(events),
  };
  return {
    ...reads,
    async *subscribe({ after, batchSize, signal }) {
      const trail = createCheckpointTracker(reads, after);
      await trail.verify();
      const start = trail.resumesAfter();
      const end = events.at(-1)?.position;
      if (start !== undefined && (end === undefined || start > end))
        throw positionBeyondEndError(start, end);
      const rest = events.filter(({ position }) => start === undefined || position > start);
      const size = Math.min(batchSize, largestBatch);
      for (let from = 0; from < rest.length; from += size) {
        const batch = rest.slice(from, from + size);
        yield {
          events: batch,
          position: batch.at(-1)?.position,
          checkpoint: await trail.advance(batch),
          caughtUp: from + size >= rest.length,
        };
      }
      if (rest.length === 0)
        yield { events: [], position: start, checkpoint: await trail.advance([]), caughtUp: true };
      if (!signal.aborted) await once(signal, 'abort');
    },
  };
}
