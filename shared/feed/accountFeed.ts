import type { ProtectedStore } from '../eventlog/encryption/protectedStore.ts';
import { LIMITS } from '../limits.ts';
import { sleepUntilAborted } from '../lib/time/sleep.ts';
import type { EventLog } from '../ports/eventStore.ts';
import { readEndOfFeed, openCursor } from './cursor.ts';
import { createLiveFeed } from './liveFeed.ts';
import { createLoggedEvents, type LoggedEvent, type LoggedEvents } from './loggedEvents.ts';
import { positionAfter, type FeedPosition, firstPage, type FeedSlice } from './feedPosition.ts';
import { publicItems, type FeedItem } from './publicItems.ts';
import { holdPage, reserveSlice, type FeedMemory } from './pageMemory.ts';
import { createPause } from '../lib/concurrency/yieldToEventLoop.ts';
import { createFairSemaphore } from '../lib/concurrency/fairSemaphore.ts';
import { followLog } from '../eventlog/following/followLog.ts';

/** Reads the next events of an account from the log. */
type CatchUp = (
  accountId: string,
  position: FeedPosition,
  signal: AbortSignal,
) => Promise<FeedSlice>;

interface Reading {
  log: Pick<EventLog, 'subscribe'>;
  logged: LoggedEvents;
}

/** Reads of an embedded log don't wait: time for events of others between two turns, in milliseconds. */
const PAUSE_MS = 2;

/**
 * Reads from a position until a page is full, the limit of scanned events is reached, or the log
 * ends.
 */
async function readOn(
  { log, logged }: Reading,
  accountId: string,
  start: FeedPosition,
  signal: AbortSignal,
): Promise<FeedSlice> {
  const { batchEvents, pageEvents, pageBytes, scannedEvents } = LIMITS.feed;
  const events: LoggedEvent[] = [];
  let bytes = 0;
  let reached = start;
  let caughtUp = false;
  let scanned = 0;
  const pause = createPause(() => accountId, PAUSE_MS);
  await followLog({
    log,
    after: start.resumesAfter,
    batchSize: batchEvents,
    signal,
    async handleBatch(batch) {
      const pausing = pause();
      if (pausing) await pausing;
      const own = await logged(batch.events, accountId);
      const page = firstPage(own, { events: events.length, bytes });
      events.push(...page);
      for (const event of page) bytes += event.bytes;
      const isCut = page.length < own.length;
      caughtUp = batch.caughtUp && !isCut;
      if (isCut) reached = positionAfter(events.at(-1)!.checkpoint);
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
 * Reads for followers that are behind: a few reads at a time, fairly across accounts, and each read
 * only up to a limit. A read throws the errors of the log's subscription, `rate_limited` or
 * `overloaded` when it waits too long for a permit, and the abort reason.
 */
function createCatchUp(reading: Reading): CatchUp {
  const semaphore = createFairSemaphore('feed_catch_ups', {
    permits: LIMITS.feed.catchUps,
    bytes: Infinity,
  });
  return async (account_id, position, signal) => {
    const bounds = { waitMs: LIMITS.feed.catchUpWaitMs, signal };
    using _permit = await semaphore.acquire({ account_id }, bounds);
    return await readOn(reading, account_id, position, signal);
  };
}

export type { FeedItem } from './publicItems.ts';

/**
 * Pause before the log is read again when all events were shown but the live subscription has not
 * started yet.
 */
const SETTLE_MS = 100;

/** The start of a follower: after the event of a cursor, at the first event, or with new events. */
export type FeedStart = { after: string } | 'start' | 'now';

export interface FollowOptions {
  from: FeedStart;
  /** Public types to include; all by default. */
  types?: ReadonlySet<string> | undefined;
  /** Reserves the memory of pages before their events are decrypted. */
  memory: FeedMemory;
  /** Ends the iteration without an error. */
  signal: AbortSignal;
}

/**
 * Consecutive events of an account. A page without events only reports how far the log was scanned.
 */
export interface FeedPage {
  /** Emptied when the next page is requested. */
  items: readonly FeedItem[];
  /** Resumes after the page, as long as the log is the same. Undefined at the start of the log. */
  cursor: string | undefined;
  /** True when the account had no later event at the time of reading. */
  caughtUp: boolean;
  /**
   * Keeps the memory of the page reserved when the next page is requested, until the returned function
   * is called. Undefined for a page without events.
   */
  retain?: () => () => void;
}

/** The events of accounts, for any number of concurrent followers. */
export interface AccountFeed extends AsyncDisposable {
  /**
   * The public events of an account in log order: existing events first, then live ones, until the
   * feed is disposed. The first page arrives immediately and contains the start position. Later
   * pages are read on demand, once there is memory for them. While there are no events, an occasional
   * page carries a later cursor. No event is missed after resuming from the last cursor.
   *
   * Errors: `position_unknown`, `log_changed` when the log does not contain the event of the
   * cursor; `store_unavailable`, `rate_limited`, `overloaded`; `key_missing`, `stream_damaged`,
   * `release_too_old` for an event that can't be shown, after all events before it.
   */
  followAccount(accountId: string, options: FollowOptions): AsyncGenerator<FeedPage, void>;
}

const BEGINNING: FeedPosition = { resumesAfter: undefined, cursor: undefined, scannedTo: '' };

async function startPosition(log: EventLog, from: FeedStart): Promise<FeedPosition> {
  if (from === 'start') return BEGINNING;
  if (from === 'now') {
    const { start, cursor } = await readEndOfFeed(log);
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

/** A slice, and whether it came from the live subscription. */
interface LiveSlice extends FeedSlice {
  isLive: boolean;
}

/** A slice whose events are no longer in memory. */
interface ReachedPosition extends Omit<LiveSlice, 'events'> {
  isEmpty: boolean;
}

/** The feed of a process. All live followers share one subscription to the log. */
export function createAccountFeed(log: EventLog & Pick<ProtectedStore, 'keys'>): AccountFeed {
  const logged = createLoggedEvents(log);
  const live = createLiveFeed({ log, logged });
  const catchUp = createCatchUp({ log, logged });
  const disposal = new AbortController();

  /**
   * The next events of an account. The live subscription may lag behind the log, so an `unsure`
   * follower compares it with the head of the log, and reads the log itself if necessary.
   */
  async function next(
    accountId: string,
    position: FeedPosition,
    unsure: boolean,
    signal: AbortSignal,
  ): Promise<LiveSlice> {
    const recent = live.after(accountId, position);
    const claimsAll = unsure && recent?.caughtUp;
    if (recent && !(claimsAll && ((await log.head()) ?? '') > recent.position.scannedTo))
      return { ...recent, isLive: true };
    return { ...(await catchUp(accountId, position, signal)), isLive: false };
  }

  /** Yields the next pages. They are no longer in memory when the position reached is returned. */
  async function* nextPages(
    accountId: string,
    { position, unsure }: { position: FeedPosition; unsure: boolean },
    { types, memory, signal }: FollowOptions,
  ): AsyncGenerator<FeedPage, ReachedPosition> {
    const { slice, permit } = await reserveSlice(memory, signal, () =>
      next(accountId, position, unsure, signal),
    );
    const { retain, release } = holdPage(permit);
    const { events, ...reached } = slice;
    try {
      for await (const { items, cursor } of publicItems(log.keys, events, { accountId, types })) {
        yield { items, cursor, caughtUp: false, retain };
        // Suspended generators keep their last value, and so does each caller that passes the page on.
        items.length = 0;
        if (signal.aborted) break;
      }
      return { ...reached, isEmpty: events.length === 0 };
    } finally {
      release();
    }
  }

  async function* follow(
    accountId: string,
    options: FollowOptions,
  ): AsyncGenerator<FeedPage, void> {
    const { signal } = options;
    let position = await startPosition(log, options.from);
    yield { items: [], cursor: position.cursor, caughtUp: false };
    let hasReported = false;
    let unsure = true;
    let lastReport = { cursor: position.cursor, at: performance.now() };
    while (!signal.aborted) {
      const reached: ReachedPosition = yield* nextPages(accountId, { position, unsure }, options);
      if (signal.aborted) return;
      ({ position } = reached);
      if (!reached.isEmpty) hasReported = false;
      const isLate = performance.now() - lastReport.at >= LIMITS.feed.progressMs;
      if ((reached.caughtUp && !hasReported) || (isLate && position.cursor !== lastReport.cursor)) {
        lastReport = { cursor: position.cursor, at: performance.now() };
        hasReported = reached.caughtUp;
        unsure &&= !hasReported;
        yield { items: [], cursor: position.cursor, caughtUp: reached.caughtUp };
      } else if (reached.isLive) position = await live.untilMoved(accountId, position, signal);
      else if (reached.caughtUp) await sleepUntilAborted(SETTLE_MS, { signal });
    }
  }

  return {
    async *followAccount(accountId, options) {
      const signal = AbortSignal.any([options.signal, disposal.signal]);
      const following = live.join();
      try {
        yield* follow(accountId, { ...options, signal });
      } catch (error) {
        // After an abort, errors are only its consequence.
        if (!signal.aborted) throw error;
      } finally {
        following.leave();
      }
    },
    async [Symbol.asyncDispose]() {
      disposal.abort();
      live.end();
    },
  };
}
