import type { ProtectedStore } from '../eventlog/encryption/protectedStore.ts';
import { LIMITS } from '../limits.ts';
import { sleepUntilAborted } from '../lib/time/sleep.ts';
import type { EventLog } from '../ports/eventStore.ts';
import { endOfFeed, openCursor } from './cursor.ts';
import { createLiveFeed } from './liveFeed.ts';
import { createLoggedEvents, type LoggedEvent, type LoggedEvents } from './loggedEvents.ts';
import { positionAfter, type FeedPosition, firstPage, type FeedSlice } from './feedPosition.ts';
import { publicItems, type FeedItem } from './publicItems.ts';
import { createFairSemaphore } from '../lib/concurrency/fairSemaphore.ts';
import { followLog } from '../eventlog/following/followLog.ts';

/** The next events of an account, read from the log. */
type CatchUp = (accountId: string, place: FeedPosition, signal: AbortSignal) => Promise<FeedSlice>;

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
function createCatchUp(reading: Reading): CatchUp {
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

export type { FeedItem } from './publicItems.ts';

/** Before the log is read again that has shown all, and is not followed live yet. */
const SETTLE_MS = 100;

/** Where a follower begins: behind what a cursor names, at the first event, or with what comes. */
export type FeedStart = { after: string } | 'start' | 'now';

export interface FollowOptions {
  from: FeedStart;
  /** The public types that are wanted; all without it. */
  types?: ReadonlySet<string> | undefined;
  /** Ends the iteration without an error. */
  signal: AbortSignal;
}

/** Consecutive events of an account; without any it only says how far the log was looked through. */
export interface FeedPage {
  items: readonly FeedItem[];
  /** Follows on behind the page, as long as the log is the same; undefined at its beginning. */
  cursor: string | undefined;
  /** True when, at the moment of looking, the account had no later event. */
  caughtUp: boolean;
}

/** The events of accounts, for any number of followers. */
export interface AccountFeed extends AsyncDisposable {
  /**
   * The public events of an account in the order of the log: first what is there, then live, for
   * ever, or until the feed is disposed of. The first page comes at once, and says where it begins;
   * the next is read only when it is asked for. Where nothing comes, a page now and then has a later
   * cursor.
   * Errors: `position_unknown`, `log_changed` where the log does not hold what the cursor names;
   * `store_unavailable`, `rate_limited`, `overloaded`; `key_missing`, `stream_damaged`,
   * `release_too_old` for an event that can't be shown, after all before it. From the last cursor
   * on, nothing is missed.
   */
  followAccount(accountId: string, options: FollowOptions): AsyncGenerator<FeedPage, void>;
}

const BEGINNING: FeedPosition = { resumesAfter: undefined, cursor: undefined, scannedTo: '' };

/** Errors: those of openCursor. */
async function placeOf(log: EventLog, from: FeedStart): Promise<FeedPosition> {
  if (from === 'start') return BEGINNING;
  if (from === 'now') {
    const { start, cursor } = await endOfFeed(log);
    return {
      resumesAfter: start,
      cursor,
      scannedTo: typeof start === 'object' ? start.position : (start ?? ''),
    };
  }
  const start = await openCursor(log, from.after);
  return typeof start === 'object'
    ? positionAfter(start)
    : { resumesAfter: start, cursor: from.after, scannedTo: start };
}

/** The feed of a process: one subscription of the log for all who follow live. */
export function createAccountFeed(log: EventLog & Pick<ProtectedStore, 'keys'>): AccountFeed {
  const logged = createLoggedEvents(log);
  const live = createLiveFeed({ log, logged });
  const catchUp = createCatchUp({ log, logged });
  const over = new AbortController();

  /**
   * What comes next for an account. What was heard of the log may be late: whoever is `unsure` of it is
   * shown all that was written by now.
   */
  async function next(
    accountId: string,
    place: FeedPosition,
    unsure: boolean,
    signal: AbortSignal,
  ) {
    const recent = live.after(accountId, place);
    const claimsAll = unsure && recent?.caughtUp;
    if (recent && !(claimsAll && ((await log.head()) ?? '') > recent.position.scannedTo))
      return { ...recent, isLive: true };
    return { ...(await catchUp(accountId, place, signal)), isLive: false };
  }

  async function* follow(
    accountId: string,
    { from, types, signal }: FollowOptions,
  ): AsyncGenerator<FeedPage, void> {
    let place = await placeOf(log, from);
    yield { items: [], cursor: place.cursor, caughtUp: false };
    let isTold = false;
    let unsure = true;
    let told = { cursor: place.cursor, at: performance.now() };
    while (!signal.aborted) {
      const found = await next(accountId, place, unsure, signal);
      for await (const page of publicItems(log.keys, found.events, { accountId, types })) {
        yield { ...page, caughtUp: false };
        if (signal.aborted) return;
      }
      ({ position: place } = found);
      if (found.events.length > 0) isTold = false;
      const isLate = performance.now() - told.at >= LIMITS.feed.progressMs;
      if ((found.caughtUp && !isTold) || (isLate && place.cursor !== told.cursor)) {
        told = { cursor: place.cursor, at: performance.now() };
        isTold = found.caughtUp;
        unsure &&= !isTold;
        yield { items: [], cursor: place.cursor, caughtUp: found.caughtUp };
      } else if (found.isLive) place = await live.untilMoved(accountId, place, signal);
      else if (found.caughtUp) await sleepUntilAborted(SETTLE_MS, { signal });
    }
  }

  return {
    async *followAccount(accountId, options) {
      const signal = AbortSignal.any([options.signal, over.signal]);
      const following = live.join();
      try {
        yield* follow(accountId, { ...options, signal });
      } catch (error) {
        // Whoever has ended it is told of nothing that this brought about.
        if (!signal.aborted) throw error;
      } finally {
        following.leave();
      }
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      live.end();
    },
  };
}
