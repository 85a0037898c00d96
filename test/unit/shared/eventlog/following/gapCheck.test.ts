import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { withGapCheck } from '../../../../../shared/eventlog/following/gapCheck.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type {
  EventBatch,
  EventStore,
  StoredEvent,
} from '../../../../../shared/ports/eventStore.ts';
import { placed, streamsWriter } from '../../../../support/fakes/memoryLog.ts';
import { memoryReads } from '../../../../support/fakes/memoryReads.ts';

const { signal } = new AbortController();

/**
 * A log that holds events and delivers only those that `isDelivered` accepts, two in a batch, up to the
 * last one. It counts its reads.
 */
function partialLog(
  held: readonly StoredEvent[],
  isDelivered: (event: StoredEvent) => boolean,
  readStream: EventStore['readStream'] = memoryReads(held).readStream,
) {
  const state = { reads: 0, isDelivered };
  const log = withGapCheck({
    readStream(stream, options) {
      state.reads += 1;
      return readStream(stream, options);
    },
    async *subscribe({ after }): AsyncGenerator<EventBatch> {
      const start = typeof after === 'string' ? after : '';
      const rest = held.filter((event) => event.position > start && state.isDelivered(event));
      for (let from = 0; from < rest.length; from += 2) {
        const events = rest.slice(from, from + 2);
        const { position } = events.at(-1)!;
        yield { events, position, checkpoint: undefined, caughtUp: false };
      }
    },
  });
  return { log, state };
}

type Log = ReturnType<typeof partialLog>['log'];

/** The events that a subscription delivers up to its end, or up to a number of batches. */
async function deliveredBy(
  log: Log,
  after?: StoredEvent,
  batches = Infinity,
): Promise<StoredEvent[]> {
  const delivered: StoredEvent[] = [];
  let read = 0;
  for await (const { events } of log.subscribe({ after: after?.position, batchSize: 2, signal })) {
    delivered.push(...events);
    read += 1;
    if (read >= batches) break;
  }
  return delivered;
}

/** Ten events each of two streams, interleaved. */
const write = streamsWriter();
const EVENTS = placed(Array.from({ length: 20 }, (_, at) => write(`session-${at % 2}`, { at })));
const MISSING = EVENTS[9]!;
const isNotMissing = (event: StoredEvent): boolean => event !== MISSING;
const leavesOut = {
  code: 'store_unavailable',
  message: `The event store leaves out events: it delivered revision ${MISSING.revision + 1} of the stream ${MISSING.stream} without revision ${MISSING.revision}, which the stream holds.`,
};

test('an event that a subscription leaves out fails it, until it is delivered', async () => {
  const { log, state } = partialLog(EVENTS, isNotMissing);
  await expect(deliveredBy(log)).rejects.toMatchObject(leavesOut);
  await expect(deliveredBy(log, EVENTS[7])).rejects.toMatchObject(leavesOut);
  state.isDelivered = () => true;
  expect(await deliveredBy(log, EVENTS[7])).toEqual(EVENTS.slice(8));
});

test('an event is missed although the subscription ended before the next one of its stream', async () => {
  const { log } = partialLog(EVENTS, isNotMissing);
  const delivered = await deliveredBy(log, undefined, 5);
  expect(delivered.at(-1)).toBe(EVENTS[10]);
  await expect(deliveredBy(log, EVENTS[10])).rejects.toMatchObject(leavesOut);
});

test('the first event of a stream after the start is compared with the one before it', async () => {
  const { log, state } = partialLog(EVENTS, isNotMissing);
  await expect(deliveredBy(log, EVENTS[8])).rejects.toMatchObject(leavesOut);
  state.isDelivered = () => true;
  expect(await deliveredBy(log, EVENTS[8])).toEqual(EVENTS.slice(9));
});

test('streams with names longer than those of Turnlog are not remembered', async () => {
  const named = streamsWriter();
  const events = placed(Array.from({ length: 3 }, (_, at) => named(`x${'-'.repeat(200)}`, { at })));
  const { log, state } = partialLog(events, (event) => event !== events[1]);
  expect(await deliveredBy(log)).toHaveLength(2);
  expect(state.reads).toBe(0);
});

test('a log without gaps is not read', async () => {
  const { log, state } = partialLog(EVENTS, () => true);
  await deliveredBy(log);
  expect(state.reads).toBe(0);
});

const withoutMissing = EVENTS.filter(isNotMissing);
test.each<[string, EventStore['readStream']]>([
  ['lacks', memoryReads(withoutMissing).readStream],
  ['has not even the beginning of', async () => []],
  [
    'refuses to read',
    async () => {
      throw new TurnlogError('stream_damaged', 'It is damaged.');
    },
  ],
])('a stream that has lost an event is delivered when the store %s it', async (_, readStream) => {
  const { log, state } = partialLog(EVENTS, isNotMissing, readStream);
  expect(await deliveredBy(log)).toEqual(withoutMissing);
  // Once for the gap, and not again.
  expect(state.reads).toBe(1);
});

test('events of other applications may be left out', async () => {
  for (const at of [9, 11]) {
    const held = EVENTS.with(at, { ...EVENTS[at]!, metadata: '{}' });
    const { log } = partialLog(held, (event) => event !== held[9]);
    expect(await deliveredBy(log)).toEqual(held.toSpliced(9, 1));
  }
});

test('streams that were forgotten may grow again, and recent omissions are found', async () => {
  const writeMany = streamsWriter();
  const streams = Array.from({ length: 10_100 }, (_, index) => `session-${index}`);
  const events = [...streams, ...streams, 'session-10000'].map((stream) => writeMany(stream, {}));
  const held = placed(events);
  const { log, state } = partialLog(held, () => true);
  expect(await deliveredBy(log)).toHaveLength(held.length);
  state.isDelivered = (event) => event !== held[20_100];
  await expect(deliveredBy(log)).rejects.toMatchObject({ code: 'store_unavailable' });
});

test('a log without gaps is delivered wherever subscriptions begin and end', async () => {
  const subscriptions = fc.array(fc.tuple(fc.nat(20), fc.integer({ min: 1, max: 10 })));
  await fc.assert(
    fc.asyncProperty(subscriptions, async (ranges) => {
      const { log } = partialLog(EVENTS, () => true);
      for (const [start, batches] of ranges)
        expect(await deliveredBy(log, EVENTS[start - 1], batches)).toEqual(
          EVENTS.slice(start, start + 2 * batches),
        );
    }),
  );
});
