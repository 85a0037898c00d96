import { expect, test } from '@jest/globals';
import { registeredResources } from '../../../../shared/lib/concurrency/resources.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { createLiveFeed } from '../../../../shared/feed/liveFeed.ts';
import type { LoggedEvent } from '../../../../shared/feed/loggedEvents.ts';
import type { FeedPosition } from '../../../../shared/feed/feedPosition.ts';
import type {
  EventBatch,
  EventLog,
  Position,
  StoredEvent,
} from '../../../../shared/ports/eventStore.ts';

const at = (position: number): Position => String(position).padStart(16, '0') as never;
const HEAD = at(10);

/** An event of an account, as far as a follower looks at it. */
function eventOf(account_id: string, number: number): LoggedEvent {
  const position = at(number);
  return {
    stored: { position } as StoredEvent,
    account_id,
    checkpoint: { position, log_id: 'log', event_id: `event_${number}`, event_hash: 'hash' },
    bytes: 100,
  };
}

/** A log whose batches come when they are pushed; resolves once each was taken. */
async function following() {
  const waiting: { batch: EventBatch; taken: () => void }[] = [];
  let wake: () => void = () => undefined;
  const known = new Map<StoredEvent, LoggedEvent>();
  const log: Pick<EventLog, 'subscribe' | 'head'> = {
    head: async () => HEAD,
    async *subscribe({ signal }) {
      for (;;) {
        if (signal?.aborted) return;
        const next = waiting.shift();
        if (!next) {
          await new Promise<void>((resolve) => (wake = resolve));
          continue;
        }
        yield next.batch;
        next.taken();
      }
    },
  };
  const live = createLiveFeed({
    log,
    logged: async (events) => events.map((stored) => known.get(stored)!),
  });
  const push = (...events: LoggedEvent[]): Promise<void> =>
    new Promise((taken) => {
      for (const event of events) known.set(event.stored, event);
      const { checkpoint } = events.at(-1)!;
      const { position } = checkpoint;
      const stored = events.map((event) => event.stored);
      waiting.push({ batch: { events: stored, position, checkpoint, caughtUp: true }, taken });
      wake();
    });
  live.join();
  await push(eventOf('others', 11));
  return { live, push };
}

const START: FeedPosition = { resumesAfter: HEAD, cursor: undefined, scannedTo: HEAD };
const positionsIn = (found: { events: readonly LoggedEvent[] } | undefined) =>
  found?.events.map(({ stored }) => stored.position);

test('what comes between a look and the wait that follows it is not passed over', async () => {
  const { live, push } = await following();
  const { signal } = new AbortController();
  const looked = live.after('own', START)!;
  expect(positionsIn(looked)).toEqual([]);
  await push(eventOf('own', 12));
  const place = live.untilMoved('own', looked.position, signal);
  await push(eventOf('others', 13));
  await push(eventOf('others', 14), eventOf('own', 15));
  expect(positionsIn(live.after('own', await place))).toEqual([at(12), at(15)]);
  live.end();
});

test('a follower is woken by an event of its own, and passes those of others by', async () => {
  const { live, push } = await following();
  const { signal } = new AbortController();
  const { position: place } = live.after('own', START)!;
  const news = live.untilMoved('own', place, signal);
  await push(eventOf('others', 12));
  await push(eventOf('own', 13), eventOf('others', 14));
  await push(eventOf('own', 15));
  const reached = await news;
  expect(reached.scannedTo).toBe(at(12));
  expect(positionsIn(live.after('own', reached))).toEqual([at(13), at(15)]);
  live.end();
});

test('the metrics count the events that the followers of a process share, until it ends', async () => {
  const before = registeredResources().length;
  const { live, push } = await following();
  const resources = registeredResources().slice(before);
  expect(resources.map(([name]) => name)).toEqual(['feed_recent_events']);
  const [[, resource]] = resources as [(typeof resources)[number]];
  live.join();
  await push(eventOf('own', 12));
  const { recentEvents, recentBytes } = LIMITS.feed;
  expect(resource.usage()).toEqual({
    count: { limit: recentEvents, used: 2 },
    bytes: { limit: recentBytes, used: 200 },
  });
  const large = Array.from({ length: 100 }, (_, n) => ({ ...eventOf('own', 13 + n), bytes: 1e6 }));
  await push(...large);
  expect(resource.usage().bytes!.used).toBeLessThanOrEqual(recentBytes);
  live.end();
  expect(resource.usage()).toMatchObject({ count: { used: 0 }, bytes: { used: 0 } });
});
