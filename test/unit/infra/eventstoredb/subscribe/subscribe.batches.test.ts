import { describe, expect, test } from '@jest/globals';
import { readBatches } from '../../../../../infra/eventstoredb/subscribe/subscribe.ts';
import type {
  SubscriptionMessage,
  SubscriptionStream,
} from '../../../../../infra/eventstoredb/subscribe/subscriptionStream.ts';
import { createRecentEventIds } from '../../../../../infra/eventstoredb/append/recentEventIds.ts';
import type { LogVerifier } from '../../../../../infra/eventstoredb/subscribe/logVerifier.ts';
import { toEventPosition } from '../../../../../infra/eventstoredb/read/positions.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type { EventBatch, Position } from '../../../../../shared/ports/eventStore.ts';

/** The number of messages that gRPC buffers. */
const BUFFER_SIZE = 16;

const at = (commit: number): Position => toEventPosition(BigInt(commit));
const event = (commit: number): SubscriptionMessage => ({
  kind: 'event',
  bytes: 4,
  event: {
    id: `${commit}`,
    stream: 'session-s',
    revision: commit,
    position: at(commit),
    type: 't',
    data: '{}',
    metadata: '{}',
  },
});
const events = (from: number, count: number): SubscriptionMessage[] =>
  Array.from({ length: count }, (_, index) => event(from + index));
const CAUGHT_UP: SubscriptionMessage = { kind: 'caught_up' };

/** A server that sends messages as fast as they are taken, and its log. */
function fakeServer() {
  const unsent: SubscriptionMessage[] = [];
  let buffered: SubscriptionMessage[] = [];
  let end = 0;
  let onArrival: (() => void) | undefined;
  const fill = (): void => {
    buffered = [...buffered, ...unsent.splice(0, BUFFER_SIZE - buffered.length)];
  };
  const stream: SubscriptionStream = {
    take() {
      setImmediate(fill);
      return buffered.shift();
    },
    isEmpty: () => buffered.length === 0,
    isBehind: () => buffered.length >= BUFFER_SIZE,
    waitForMessages: (timeoutMs) =>
      new Promise((resolve) => {
        fill();
        if (buffered.length > 0) {
          setImmediate(resolve, true);
          return;
        }
        const timer = setTimeout(resolve, Math.min(timeoutMs, 20), false);
        onArrival = () => {
          clearTimeout(timer);
          fill();
          resolve(true);
        };
      }),
    cancel: () => undefined,
  };
  const verifier: LogVerifier = {
    requireWithinLog: () => Promise.resolve(),
    isValidCheckpoint: (checkpoint) =>
      Promise.resolve(checkpoint !== undefined && checkpoint <= at(end)),
    advanceWhileIdle: (position) =>
      Promise.resolve(end > 0 && (position ?? '') < at(end) ? at(end) : position),
    endsBefore: (position) => Promise.resolve(at(end) < position),
    isEndOfLog: (position) => Promise.resolve((position ?? '') >= at(end)),
    explainError: (_, error) => Promise.resolve(error),
  };
  return {
    stream,
    verifier,
    /** Sends messages; the log ends at `newEnd`. */
    send(messages: readonly SubscriptionMessage[], newEnd: number): void {
      unsent.push(...messages);
      end = newEnd;
      fill();
      onArrival?.();
    },
  };
}

type Batch = Omit<EventBatch, 'checkpoint'>;

const subscribe = (
  { stream, verifier }: ReturnType<typeof fakeServer>,
  batchSize: number,
  position?: Position,
) => {
  const recentEventIds = createRecentEventIds();
  const falsePositions: Position[] = [];
  const iterator = readBatches(stream, {
    batchSize,
    position,
    recentEventIds,
    verifier,
    reportFalsePosition(reported) {
      falsePositions.push(reported);
      return storeUnavailableError('');
    },
  });
  return {
    recentEventIds,
    falsePositions,
    next: async (): Promise<Batch> => (await iterator.next()).value,
  };
};

const sizeOf = ({ events: delivered, caughtUp }: Batch): [number, boolean] => [
  delivered.length,
  caughtUp,
];

describe('a live subscription', () => {
  test('delivers an event at once, and reports that it has caught up', async () => {
    const server = fakeServer();
    const { next } = subscribe(server, 500);
    server.send([CAUGHT_UP], 0);
    expect(sizeOf(await next())).toEqual([0, true]);
    server.send(events(1, 1), 1);
    expect(sizeOf(await next())).toEqual([1, true]);
  });

  test('delivers full batches from a backlog, and reports caught up only at the end of the log', async () => {
    const server = fakeServer();
    const { next } = subscribe(server, 500);
    server.send([CAUGHT_UP], 0);
    await next();
    server.send(events(1, 1_200), 1_300);
    const sizes: [number, boolean][] = [];
    for (let delivered = 0; delivered < 1_200; delivered += sizes.at(-1)![0])
      sizes.push(sizeOf(await next()));
    expect(sizes).toContainEqual([500, false]);
    expect(sizes.some(([, caughtUp]) => caughtUp)).toBe(false);
    // Three batches; a busy machine may end one or two early.
    expect(sizes.length).toBeLessThanOrEqual(5);
    server.send(events(1_201, 100), 1_300);
    const last = [sizeOf(await next())];
    while (!last.at(-1)![1]) last.push(sizeOf(await next()));
    expect(last.reduce((delivered, [size]) => delivered + size, 0)).toBe(100);
  });

  test('reports caught up after a full batch that only checkpoints follow', async () => {
    const server = fakeServer();
    const { next } = subscribe(server, 2);
    server.send([CAUGHT_UP], 0);
    await next();
    server.send([...events(1, 2), { kind: 'checkpoint', position: at(2) }], 2);
    expect(sizeOf(await next())).toEqual([2, false]);
    expect(sizeOf(await next())).toEqual([0, true]);
  });

  test('reaches the end of the log when the last records belong to others', async () => {
    const server = fakeServer();
    const { next } = subscribe(server, 10);
    server.send([CAUGHT_UP], 0);
    await next();
    server.send([], 7);
    expect(await next()).toEqual({ events: [], position: at(7), caughtUp: true });
  });

  test('ignores a checkpoint beyond the end of the log, and one with an impossible position', async () => {
    const server = fakeServer();
    const { next } = subscribe(server, 10);
    server.send([CAUGHT_UP], 0);
    await next();
    server.send(
      [
        { kind: 'checkpoint', position: at(99) },
        { kind: 'checkpoint', position: undefined },
        ...events(1, 1),
      ],
      1,
    );
    expect(await next()).toMatchObject({ events: [{ id: '1' }], position: at(1), caughtUp: true });
  });

  test('has not caught up before it delivers an event that this process appended', async () => {
    const server = fakeServer();
    const { recentEventIds, next } = subscribe(server, 10);
    server.send([CAUGHT_UP], 0);
    await next();
    recentEventIds.recordAppended(at(2));
    server.send(events(1, 1), 2);
    expect(sizeOf(await next())).toEqual([1, false]);
    server.send(events(2, 1), 2);
    expect(sizeOf(await next())).toEqual([1, true]);
  });
});

test('a subscription forgets an acknowledged append beyond the end of the log, and reports it', async () => {
  const server = fakeServer();
  const { recentEventIds, falsePositions, next } = subscribe(server, 10);
  recentEventIds.recordAppended(at(99));
  server.send([event(1), CAUGHT_UP], 1);
  expect(sizeOf(await next())).toEqual([1, false]);
  expect(sizeOf(await next())).toEqual([0, true]);
  expect([falsePositions, recentEventIds.lastAppended()]).toEqual([[at(99)], undefined]);
});

test('a subscription that catches up delivers full batches', async () => {
  const server = fakeServer();
  const { next } = subscribe(server, 500);
  server.send([...events(1, 1_100), CAUGHT_UP], 1_100);
  expect([sizeOf(await next()), sizeOf(await next()), sizeOf(await next())]).toEqual([
    [500, false],
    [500, false],
    [100, true],
  ]);
});

describe('a subscription fails at an event that does not follow the last one', () => {
  test.each([
    { what: 'twice', commits: [1, 2, 2, 3], good: ['1', '2'], sent: 2, last: 2 },
    { what: 'of before', commits: [1, 2, 3, 1], good: ['1', '2', '3'], sent: 1, last: 3 },
    { what: 'to resume after', resumed: 7, commits: [7, 8], good: [], sent: 7, last: 7 },
  ])('an event $what', async ({ commits, resumed, good, sent, last }) => {
    const server = fakeServer();
    const { next } = subscribe(server, 1, resumed === undefined ? undefined : at(resumed));
    server.send(
      commits.map((commit) => event(commit)),
      9,
    );
    const delivered: Batch[] = [];
    const error = await (async () => {
      for (;;) delivered.push(await next());
    })().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      message: `the event store sent the event at ${at(sent)} after the one at ${at(last)}`,
    });
    expect(delivered.map(({ events: [delivery] }) => delivery?.id)).toEqual(good);
  });

  test('but not at an event before a checkpoint', async () => {
    const server = fakeServer();
    const { next } = subscribe(server, 10);
    server.send([event(1), { kind: 'checkpoint', position: at(5) }, event(3), CAUGHT_UP], 5);
    expect(await next()).toMatchObject({ events: [{ id: '1' }, { id: '3' }] });
  });
});
