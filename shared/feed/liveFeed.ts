import { addAbortListener } from 'node:events';
import { followLog } from '../eventlog/following/followLog.ts';
import { LIMITS } from '../limits.ts';
import type { EventBatch, EventLog } from '../ports/eventStore.ts';
import type { LoggedEvents, LoggedEvent } from './loggedEvents.ts';
import { firstPage, positionAfter, type FeedSlice, type FeedPosition } from './feedPosition.ts';

/** The latest events of the log, as many as are kept in memory. */
interface RecentEvents {
  add(events: readonly LoggedEvent[]): void;
  /** The kept events after a position; undefined where some that came after it are kept no more. */
  after(position: string): readonly LoggedEvent[] | undefined;
}

/** `floor`: the position after which events are added, all of them. */
export function createRecentEvents(
  floor: string,
  { recentEvents, recentBytes } = LIMITS.feed as { recentEvents: number; recentBytes: number },
): RecentEvents {
  let kept: LoggedEvent[] = [];
  let bytes = 0;
  let from = floor;

  const firstAfter = (position: string): number => {
    let [low, high] = [0, kept.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (kept[middle]!.stored.position > position) high = middle;
      else low = middle + 1;
    }
    return low;
  };

  return {
    add(events) {
      for (const event of events) {
        kept.push(event);
        bytes += event.bytes;
      }
      let gone = 0;
      for (; kept.length - gone > recentEvents || bytes > recentBytes; gone += 1)
        bytes -= kept[gone]!.bytes;
      if (gone === 0) return;
      from = kept[gone - 1]!.stored.position;
      kept = kept.slice(gone);
    },
    after: (position) => (position < from ? undefined : kept.slice(firstAfter(position))),
  };
}

/** One who follows live, and has seen all that there was. */
interface Waiting {
  accountId: string;
  place: FeedPosition;
  wake: () => void;
}

/** The one subscription for all followers, while there are some. */
interface Following {
  ended: AbortController;
  recent: RecentEvents | undefined;
  /** How far the log was followed. */
  latest: { place: FeedPosition | undefined; caughtUp: boolean };
}

export interface LiveFeed {
  /** Follows the log from now on, for somebody who is to leave again. */
  join(): { leave(): void };
  /**
   * What has come for an account after a place; undefined where the log has to be read for that.
   */
  after(accountId: string, place: FeedPosition): FeedSlice | undefined;
  /** Resolves with how far the log has gone on without an event of the account, within the time. */
  untilMoved(accountId: string, place: FeedPosition, signal: AbortSignal): Promise<FeedPosition>;
  /** Lets go of the log. */
  end(): void;
}

interface Reading {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  logged: LoggedEvents;
}

/** Follows the log once for all who follow live, and keeps the latest events for them. */
export function createLiveFeed({ log, logged }: Reading): LiveFeed {
  const waiting = new Set<Waiting>();
  let following: Following | undefined;
  let followers = 0;
  let lingering: NodeJS.Timeout | undefined;

  const wakeAll = (): void => waiting.forEach(({ wake }) => wake());

  async function take(now: Following, recent: RecentEvents, batch: EventBatch): Promise<void> {
    const events = await logged(batch.events);
    recent.add(events);
    const { position, checkpoint, caughtUp } = batch;
    const place = checkpoint && positionAfter(checkpoint, position);
    now.latest = { place, caughtUp };
    const accounts = new Set(events.map(({ account_id }) => account_id));
    for (const one of waiting)
      if (accounts.has(one.accountId)) {
        // The next batch must not take it past what it is woken for.
        waiting.delete(one);
        one.wake();
      } else if (place && place.scannedTo > one.place.scannedTo) one.place = place;
  }

  async function follow(now: Following): Promise<void> {
    const { signal } = now.ended;
    const after = await log.head();
    const recent = createRecentEvents(after ?? '');
    now.recent = recent;
    wakeAll();
    await followLog({
      log,
      after,
      batchSize: LIMITS.feed.batchEvents,
      signal,
      handleBatch: (batch) => take(now, recent, batch),
    });
  }

  function begin(): Following {
    const now: Following = {
      ended: new AbortController(),
      recent: undefined,
      latest: { place: undefined, caughtUp: false },
    };
    follow(now).catch(() => {
      // Whoever follows reads the log then, and is told there what is wrong with it.
      if (following === now) following = undefined;
      wakeAll();
    });
    return now;
  }

  function end(): void {
    clearTimeout(lingering);
    following?.ended.abort();
    following = undefined;
  }

  return {
    join() {
      followers += 1;
      clearTimeout(lingering);
      following ??= begin();
      let left = false;
      return {
        leave() {
          if (left) return;
          left = true;
          followers -= 1;
          if (followers === 0) lingering = setTimeout(end, LIMITS.feed.lingerMs).unref();
        },
      };
    },
    after(accountId, place) {
      following ??= begin();
      const { recent, latest } = following;
      const events = recent?.after(place.scannedTo);
      if (!events) return undefined;
      const own = events.filter(({ account_id }) => account_id === accountId);
      const page = firstPage(own);
      if (page.length < own.length)
        return { events: page, position: positionAfter(page.at(-1)!.checkpoint), caughtUp: false };
      const isFurther = latest.place !== undefined && latest.place.scannedTo > place.scannedTo;
      return { events: page, position: isFurther ? latest.place! : place, caughtUp: true };
    },
    async untilMoved(accountId, place, signal) {
      // What came since it looked may be its own, and wakes nobody any more.
      const known = following?.latest.place;
      if (known && known.scannedTo > place.scannedTo) return place;
      const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
      const one: Waiting = { accountId, place, wake };
      waiting.add(one);
      using _aborting = addAbortListener(signal, () => wake());
      const timer = setTimeout(wake, LIMITS.feed.progressMs);
      try {
        await woken;
      } finally {
        clearTimeout(timer);
        waiting.delete(one);
      }
      return one.place;
    },
    end,
  };
}
