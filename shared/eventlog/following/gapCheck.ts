import { LRUCache } from 'lru-cache';
import { readPresentEvents } from '../reading/readPresentEvents.ts';
import { recordedHash } from '../hashChain.ts';
import { storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import { entriesUpTo } from '../../lib/memory/entriesUpTo.ts';
import type { EventLog, StoredEvent } from '../../ports/eventStore.ts';

/** Streams whose last delivered event is held in memory: some megabytes. */
const REMEMBERED_STREAMS = 10_000;
/** Longer than any of Turnlog's streams. Names of other streams may have megabytes. */
const MAX_STREAM_CHARS = 200;
/** Reads of single events, which may be large. */
const READS_AT_ONCE = 16;

/** Everything of a stream up to the position was delivered, or lies before the start. */
interface Delivered {
  /** Undefined when the last delivered event is not known. */
  revision: number | undefined;
  position: string;
}

/** An event that does not follow the delivered one of its stream, as far as is known. */
interface Suspect {
  event: StoredEvent;
  deliveredTo: string;
}

/** True for an event that Turnlog wrote: it has a hash. Other applications may write to our streams. */
const isOurs = (event: StoredEvent): boolean => recordedHash(event) !== '';

/** Tracks which events of each stream were delivered. */
function createDeliveries() {
  /** The position for streams that are not in memory. */
  let othersTo = '';
  const last = new LRUCache<string, Delivered>({
    ...entriesUpTo(REMEMBERED_STREAMS),
    dispose({ position }, _stream, reason) {
      if (reason === 'evict' && position > othersTo) othersTo = position;
    },
  });
  /** The end of the delivered batches. */
  let reached: string | undefined;

  return {
    /** Continues after a position. Batches after it are delivered again, or were handled elsewhere. */
    resume(start: string): void {
      if (reached === undefined || start > reached) {
        last.clear();
        othersTo = start;
      } else {
        for (const delivered of last.values())
          if (delivered.position > start)
            Object.assign(delivered, { revision: undefined, position: start });
        if (othersTo > start) othersTo = start;
      }
      reached = start;
    },
    /** Notes the events of a batch. Returns those whose previous event may not have been delivered. */
    add(events: readonly StoredEvent[]): Suspect[] {
      const suspects: Suspect[] = [];
      for (const event of events) {
        const { stream, revision, position } = event;
        if (stream.length > MAX_STREAM_CHARS) continue;
        const before = last.get(stream);
        if (revision > 0 && before?.revision !== revision - 1 && isOurs(event))
          suspects.push({ event, deliveredTo: before?.position ?? othersTo });
        last.set(stream, { revision, position });
      }
      return suspects;
    },
    finish(position: string): void {
      reached = position;
    },
  };
}

/**
 * Returns the log with subscriptions that fail with `store_unavailable` when they leave out an event that
 * its stream holds. A follower would otherwise go past it for good. Streams that have really lost events
 * are delivered as they are. Subscriptions must not overlap; each continues what the previous one knew.
 *
 * The first event of a stream that is not remembered costs a read. An omission is missed if 10,000 other
 * streams grow, or the process restarts, before the stream's next event is delivered.
 */
export function withGapCheck<Log extends Pick<EventLog, 'readStream' | 'subscribe'>>(
  log: Log,
): Log {
  const deliveries = createDeliveries();

  async function requireDelivered({ event, deliveredTo }: Suspect): Promise<void> {
    const { stream, revision } = event;
    const before = { direction: 'backwards', from: revision - 1, limit: 1 } as const;
    const [previous] = await readPresentEvents(log, stream, before);
    if (!previous || previous.position <= deliveredTo || !isOurs(previous)) return;
    throw storeUnavailableError(
      `The event store leaves out events: it delivered revision ${revision} of the stream ${stream} without revision ${previous.revision}, which the stream holds.`,
    );
  }

  const subscribe: EventLog['subscribe'] = async function* (options) {
    const { after } = options;
    deliveries.resume((typeof after === 'object' ? after.position : after) ?? '');
    for await (const batch of log.subscribe(options)) {
      const suspects = deliveries.add(batch.events);
      for (let from = 0; from < suspects.length; from += READS_AT_ONCE)
        await Promise.all(suspects.slice(from, from + READS_AT_ONCE).map(requireDelivered));
      if (batch.position !== undefined) deliveries.finish(batch.position);
      yield batch;
    }
  };

  return { ...log, subscribe };
}
