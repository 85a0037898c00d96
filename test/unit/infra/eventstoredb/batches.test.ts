import { describe, expect, test } from '@jest/globals';
import { batches } from '../../../../infra/eventstoredb/batches.ts';
import type { Feed, Step } from '../../../../infra/eventstoredb/feed.ts';
import { createKnownEvents } from '../../../../infra/eventstoredb/knownEvents.ts';
import type { LogView } from '../../../../infra/eventstoredb/logView.ts';
import { eventPosition } from '../../../../infra/eventstoredb/positions.ts';
import type { EventBatch, Position } from '../../../../shared/ports/eventStore.ts';

/** What gRPC holds for a reader. */
const BUFFERED = 16;

const at = (place: number): Position => eventPosition(BigInt(place));
const event = (place: number): Step => ({
  kind: 'event',
  event: {
    id: `${place}`,
    stream: 'session-s',
    revision: place,
    position: at(place),
    type: 't',
    data: '{}',
    metadata: '{}',
  },
});
const events = (from: number, count: number): Step[] =>
  Array.from({ length: count }, (_, index) => event(from + index));
const CAUGHT_UP: Step = { kind: 'caught_up' };

/** A subscription whose server sends what it has as fast as it is taken, and what the log holds. */
function server() {
  const coming: Step[] = [];
  let buffered: Step[] = [];
  let end = 0;
  let arrived: (() => void) | undefined;
  const fill = (): void => {
    buffered = [...buffered, ...coming.splice(0, BUFFERED - buffered.length)];
  };
  const feed: Feed = {
    take() {
      setImmediate(fill);
      return buffered.shift();
    },
    isEmpty: () => buffered.length === 0,
    isFull: () => buffered.length >= BUFFERED,
    arrival: (timeoutMs) =>
      new Promise((resolve) => {
        fill();
        if (buffered.length > 0) {
          setImmediate(resolve, true);
          return;
        }
        const timer = setTimeout(resolve, Math.min(timeoutMs, 20), false);
        arrived = () => {
          clearTimeout(timer);
          fill();
          resolve(true);
        };
      }),
    stop: () => undefined,
  };
  const view: LogView = {
    requireWithin: () => Promise.resolve(),
    holds: (checkpoint) => Promise.resolve(checkpoint !== undefined && checkpoint <= at(end)),
    considered: (position) =>
      Promise.resolve(end > 0 && (position ?? '') < at(end) ? at(end) : position),
    isEnd: (position) => Promise.resolve((position ?? '') >= at(end)),
    explain: (_, error) => Promise.resolve(error),
  };
  return {
    feed,
    view,
    /** Sends steps; the log ends at `newEnd`. */
    send(steps: readonly Step[], newEnd: number): void {
      coming.push(...steps);
      end = newEnd;
      fill();
      arrived?.();
    },
  };
}

type Batch = Omit<EventBatch, 'checkpoint'>;

const follow = ({ feed, view }: ReturnType<typeof server>, batchSize: number) => {
  const known = createKnownEvents();
  const iterator = batches(feed, { batchSize, position: undefined, known, view });
  return { known, next: async (): Promise<Batch> => (await iterator.next()).value };
};

const sizeOf = ({ events: delivered, caughtUp }: Batch): [number, boolean] => [
  delivered.length,
  caughtUp,
];

describe('a live subscription', () => {
  test('hands out an event at once, and says that it has caught up', async () => {
    const from = server();
    const { next } = follow(from, 500);
    from.send([CAUGHT_UP], 0);
    expect(sizeOf(await next())).toEqual([0, true]);
    from.send(events(1, 1), 1);
    expect(sizeOf(await next())).toEqual([1, true]);
  });

  test('hands out full batches when it finds a backlog, and says caught up only when the log has no more', async () => {
    const from = server();
    const { next } = follow(from, 500);
    from.send([CAUGHT_UP], 0);
    await next();
    from.send(events(1, 1_200), 1_300);
    const sizes: [number, boolean][] = [];
    for (let delivered = 0; delivered < 1_200; delivered += sizes.at(-1)![0])
      sizes.push(sizeOf(await next()));
    expect(sizes).toContainEqual([500, false]);
    expect(sizes.some(([, caughtUp]) => caughtUp)).toBe(false);
    // Three, and a machine that is busy may end one or two early.
    expect(sizes.length).toBeLessThanOrEqual(5);
    from.send(events(1_201, 100), 1_300);
    const last = [sizeOf(await next())];
    while (!last.at(-1)![1]) last.push(sizeOf(await next()));
    expect(last.reduce((delivered, [size]) => delivered + size, 0)).toBe(100);
  });

  test('says caught up after a full batch behind which only checkpoints come', async () => {
    const from = server();
    const { next } = follow(from, 2);
    from.send([CAUGHT_UP], 0);
    await next();
    from.send([...events(1, 2), { kind: 'checkpoint', position: at(2) }], 2);
    expect(sizeOf(await next())).toEqual([2, false]);
    expect(sizeOf(await next())).toEqual([0, true]);
  });

  test('reaches the end of the log where the last records are of others', async () => {
    const from = server();
    const { next } = follow(from, 10);
    from.send([CAUGHT_UP], 0);
    await next();
    from.send([], 7);
    expect(await next()).toEqual({ events: [], position: at(7), caughtUp: true });
  });

  test('ignores a checkpoint beyond the end of the log, and one that is no place', async () => {
    const from = server();
    const { next } = follow(from, 10);
    from.send([CAUGHT_UP], 0);
    await next();
    from.send(
      [
        { kind: 'checkpoint', position: at(99) },
        { kind: 'checkpoint', position: undefined },
        ...events(1, 1),
      ],
      1,
    );
    expect(await next()).toMatchObject({ events: [{ id: '1' }], position: at(1), caughtUp: true });
  });

  test('is not caught up with an event that this process has written and that has not come yet', async () => {
    const from = server();
    const { known, next } = follow(from, 10);
    from.send([CAUGHT_UP], 0);
    await next();
    known.written(at(2));
    from.send(events(1, 1), 2);
    expect(sizeOf(await next())).toEqual([1, false]);
    from.send(events(2, 1), 2);
    expect(sizeOf(await next())).toEqual([1, true]);
  });
});

test('a subscription that catches up gathers full batches', async () => {
  const from = server();
  const { next } = follow(from, 500);
  from.send([...events(1, 1_100), CAUGHT_UP], 1_100);
  expect([sizeOf(await next()), sizeOf(await next()), sizeOf(await next())]).toEqual([
    [500, false],
    [500, false],
    [100, true],
  ]);
});
