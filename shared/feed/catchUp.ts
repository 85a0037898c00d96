import { createFairSemaphore } from '../lib/concurrency/fairSemaphore.ts';
import { followLog } from '../eventlog/following/followLog.ts';
import { LIMITS } from '../limits.ts';
import type { EventLog } from '../ports/eventStore.ts';
import type { LoggedEvent, LoggedEvents } from './loggedEvents.ts';
import { firstPage, positionAfter, type FeedSlice, type FeedPosition } from './feedPosition.ts';

/** The next events of an account, read from the log. */
export type CatchUp = (
  accountId: string,
  place: FeedPosition,
  signal: AbortSignal,
) => Promise<FeedSlice>;

interface Reading {
  log: Pick<EventLog, 'subscribe'>;
  logged: LoggedEvents;
}

/** Reads on from a place until a page is full, the turn is over, or there is nothing more. */
async function readOn(
  { log, logged }: Reading,
  accountId: string,
  place: FeedPosition,
  signal: AbortSignal,
): Promise<FeedSlice> {
  const { batchEvents, pageEvents, pageBytes, scannedEvents } = LIMITS.feed;
  const events: LoggedEvent[] = [];
  let bytes = 0;
  let reached = place;
  let caughtUp = false;
  let scanned = 0;
  await followLog({
    log,
    after: place.resumesAfter,
    batchSize: batchEvents,
    signal,
    async handleBatch(batch) {
      const own = await logged(batch.events, accountId);
      const taken = firstPage(own, { events: events.length, bytes });
      events.push(...taken);
      for (const event of taken) bytes += event.bytes;
      const isCut = taken.length < own.length;
      caughtUp = batch.caughtUp && !isCut;
      if (isCut) reached = positionAfter(taken.at(-1)!.checkpoint);
      else if (batch.checkpoint) reached = positionAfter(batch.checkpoint, batch.position);
      else if (batch.position !== undefined) reached = { ...reached, scannedTo: batch.position };
      scanned += batch.events.length;
      const isFull = events.length >= pageEvents || bytes >= pageBytes;
      return isCut || isFull || caughtUp || scanned >= scannedEvents ? 'stop' : undefined;
    },
  });
  return { events, position: reached, caughtUp };
}

/**
 * Reads for those who are behind: a few at a time, in turn among accounts, and only so far in one go.
 * Errors of a read: those of the log's subscription, `rate_limited` and `overloaded` where its turn
 * does not come, the signal's reason.
 */
export function createCatchUp(reading: Reading): CatchUp {
  const line = createFairSemaphore({ permits: LIMITS.feed.catchUps, bytes: Infinity });
  return async (account_id, place, signal) => {
    const turn = await line.acquire(
      { account_id, bytes: 0 },
      { waitMs: LIMITS.feed.catchUpWaitMs, signal },
    );
    try {
      return await readOn(reading, account_id, place, signal);
    } finally {
      turn.release();
    }
  };
}
