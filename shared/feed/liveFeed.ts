import { addAbortListener } from 'node:events';
import { followLog } from '../eventlog/following/followLog.ts';
import { registerResource, type ResourceUsage } from '../lib/concurrency/resources.ts';
import { LIMITS } from '../limits.ts';
import type { EventBatch, EventLog } from '../ports/eventStore.ts';
import type { LoggedEvents, LoggedEvent } from './loggedEvents.ts';
import { firstPage, positionAfter, type FeedSlice, type FeedPosition } from './feedPosition.ts';

/** The latest events of the log that fit into the memory limits. */
interface RecentEvents {
  add(events: readonly LoggedEvent[]): void;
  /** The kept events after a position; undefined when later events were already dropped. */
  after(position: string): readonly LoggedEvent[] | undefined;
  usage(): ResourceUsage;
}

/** `floor`: the position after which every event is added. */
export function createRecentEvents(
  floor: string,
  { recentEvents, recentBytes } = LIMITS.feed as { recentEvents: number; recentBytes: number },
): RecentEvents {
  let retained: LoggedEvent[] = [];
  let bytes = 0;
  let droppedTo = floor;

  const firstAfter = (position: string): number => {
    let [low, high] = [0, retained.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (retained[middle]!.stored.position > position) high = middle;
      else low = middle + 1;
    }
    return low;
  };

  return {
    add(events) {
      for (const event of events) {
        retained.push(event);
        bytes += event.bytes;
      }
      let dropped = 0;
      for (; retained.length - dropped > recentEvents || bytes > recentBytes; dropped += 1)
        bytes -= retained[dropped]!.bytes;
      if (dropped === 0) return;
      droppedTo = retained[dropped - 1]!.stored.position;
      retained = retained.slice(dropped);
    },
    after: (position) => (position < droppedTo ? undefined : retained.slice(firstAfter(position))),
    usage: () => ({
      count: { limit: recentEvents, used: retained.length },
      bytes: { limit: recentBytes, used: bytes },
    }),
  };
}

/** A live follower that has seen all events so far. */
interface Waiting {
  accountId: string;
  place: FeedPosition;
  wake: () => void;
}

/** The subscription that all followers share. */
interface Following {
  ended: AbortController;
  recent: RecentEvents | undefined;
  /** How far the log has been followed. */
  latest: { place: FeedPosition | undefined; caughtUp: boolean };
}

interface LiveFeed {
  /** Follows the log at least until `leave` is called. */
  join(): { leave(): void };
  /** The events of an account after a position; undefined when they must be read from the log. */
  after(accountId: string, position: FeedPosition): FeedSlice | undefined;
  /**
   * Resolves when an event of the account arrives, the signal aborts or the progress interval ends,
   * with the position reached in the log before such an event.
   */
  untilMoved(accountId: string, position: FeedPosition, signal: AbortSignal): Promise<FeedPosition>;
  /** Ends the subscription. */
  end(): void;
}

interface Reading {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  logged: LoggedEvents;
}

/** Follows the log once for all live followers, and keeps the latest events for them. */
export function createLiveFeed({ log, logged }: Reading): LiveFeed {
  const waiting = new Set<Waiting>();
  let following: Following | undefined;
  let followers = 0;
  let lingering: NodeJS.Timeout | undefined;
  const noEvents = createRecentEvents('');
  registerResource('feed_recent_events', {
    usage: () => (following?.recent ?? noEvents).usage(),
  });

  const wakeAll = (): void => waiting.forEach(({ wake }) => wake());

  async function take(now: Following, recent: RecentEvents, batch: EventBatch): Promise<void> {
    const events = await logged(batch.events);
    recent.add(events);
    const { position, checkpoint, caughtUp } = batch;
    const reached = checkpoint && positionAfter(checkpoint, position);
    now.latest = { place: reached, caughtUp };
    const accounts = new Set(events.map(({ account_id }) => account_id));
    for (const follower of waiting)
      if (accounts.has(follower.accountId)) {
        // A later batch must not move the position past the event that wakes this follower.
        waiting.delete(follower);
        follower.wake();
      } else if (reached && reached.scannedTo > follower.place.scannedTo) follower.place = reached;
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
      // Followers now read the log themselves, and receive its errors there.
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
      let hasLeft = false;
      return {
        leave() {
          if (hasLeft) return;
          hasLeft = true;
          followers -= 1;
          if (followers === 0) lingering = setTimeout(end, LIMITS.feed.lingerMs).unref();
        },
      };
    },
    after(accountId, position) {
      following ??= begin();
      const { recent, latest } = following;
      const events = recent?.after(position.scannedTo);
      if (!events) return undefined;
      const own = events.filter(({ account_id }) => account_id === accountId);
      const page = firstPage(own);
      if (page.length < own.length)
        return { events: page, position: positionAfter(page.at(-1)!.checkpoint), caughtUp: false };
      const isFurther = latest.place !== undefined && latest.place.scannedTo > position.scannedTo;
      return { events: page, position: isFurther ? latest.place! : position, caughtUp: true };
    },
    async untilMoved(accountId, position, signal) {
      // An event of the account may have arrived since the follower's last check; it causes no
      // further wake-up.
      const latest = following?.latest.place;
      if (latest && latest.scannedTo > position.scannedTo) return position;
      const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
      const follower: Waiting = { accountId, place: position, wake };
      waiting.add(follower);
      using _aborting = addAbortListener(signal, () => wake());
      const timer = setTimeout(wake, LIMITS.feed.progressMs);
      try {
        await woken;
      } finally {
        clearTimeout(timer);
        waiting.delete(follower);
      }
      return follower.place;
    },
    end,
  };
}
