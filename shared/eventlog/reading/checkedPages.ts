import type { EventLog, ReadOptions, StoredEvent } from '../../ports/eventStore.ts';
import { storeDamageError } from './streamDamage.ts';

/** Why events can't be the answer to a read; undefined when they can. Revisions may be missing. */
function findPageFlaw(
  stream: string,
  { direction, from }: ReadOptions,
  events: readonly StoredEvent[],
): string | undefined {
  const step = direction === 'forwards' ? 1 : -1;
  let nearest = from ?? (direction === 'forwards' ? 0 : Number.MAX_SAFE_INTEGER);
  for (const event of events) {
    const { revision } = event;
    if (event.stream !== stream) return 'the event store answered with events of another stream';
    if (!Number.isSafeInteger(revision) || (revision - nearest) * step < 0)
      return `the event store answered with revision ${revision} out of order`;
    nearest = revision + step;
  }
  return undefined;
}

/**
 * A log whose reads of a stream return only events of that stream, in order, and none outside the
 * range. Reads throw `stream_damaged` for other events: a server could return the events of another
 * account, or repeat a page without end. All event stores are opened through this function.
 */
export const withCheckedPages = <Log extends Pick<EventLog, 'readStream'>>(log: Log): Log => ({
  ...log,
  async readStream(stream: string, options: ReadOptions): Promise<StoredEvent[]> {
    const events = await log.readStream(stream, options);
    const flaw = findPageFlaw(stream, options, events);
    if (flaw !== undefined) throw storeDamageError(stream, flaw);
    return events;
  },
});
