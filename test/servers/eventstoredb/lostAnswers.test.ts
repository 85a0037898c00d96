import { afterAll, beforeAll, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type {
  AppendResult,
  EncodedEvent,
  EventStore,
  ExpectedRevision,
  StoredEvent,
} from '../../../shared/ports/eventStore.ts';
import {
  idsOf,
  newEvents,
  newStream,
  readAll,
  untilAnswered,
} from '../../contracts/eventStore/support.ts';
import { APPEND_FAULTS, type AppendFault } from '../../support/servers/eventstoredb-node/faults.ts';
import {
  openOnNode,
  type NodeAndStore,
} from '../../support/servers/eventstoredb/eventStoreDbFixture.ts';
import { size } from '../../support/jest/size.ts';

/**
 * Short, so that a schedule with a silent node stays short. The writer resends appends whose
 * outcome is still unknown.
 */
const DEADLINE_MS = 1000;
const LANES = 8;
const SCHEDULES_PER_LANE = size({ small: 12, full: 64 });

interface Schedule {
  /** The fault of each append in order of arrival; later appends have none. */
  faults: AppendFault[];
  /** The number of events of each append, by writer. Each writer has its own stream. */
  writers: number[][];
  /** The number of events that two more writers append at once to one new stream. */
  race: { first: number; second: number };
}

/** Silence takes the most time, so it is the rarest fault. */
const fault = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(...APPEND_FAULTS.filter((name) => !name.startsWith('no_answer'))),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<AppendFault>('no_answer_before_write', 'no_answer_after_write'),
  },
);

const eventCount = fc.integer({ min: 1, max: 3 });

const schedules = fc.record<Schedule>({
  faults: fc.array(fault, { minLength: 1, maxLength: 8 }),
  writers: fc.array(fc.array(eventCount, { minLength: 1, maxLength: 4 }), {
    minLength: 1,
    maxLength: 3,
  }),
  race: fc.record({ first: eventCount, second: eventCount }),
});

/** Sends an append until its outcome is known. */
async function untilKnown(
  store: EventStore,
  stream: string,
  expected: ExpectedRevision,
  events: readonly EncodedEvent[],
): Promise<AppendResult | 'stream_conflict'> {
  try {
    return await untilAnswered(() => store.append(stream, expected, events));
  } catch (error) {
    if (isTurnlogError(error, 'stream_conflict')) return 'stream_conflict';
    throw error;
  }
}

/**
 * Reads have the same short deadline, and faults of other writers interrupt their connection.
 */
const stored = (store: EventStore, stream: string): Promise<StoredEvent[]> =>
  untilAnswered(() => readAll(store, stream));

async function writeAlone(store: EventStore, appends: readonly number[]): Promise<void> {
  const stream = newStream();
  const written: EncodedEvent[] = [];
  const positions: string[] = [];
  for (const count of appends) {
    const events = newEvents(count);
    const outcome = await untilKnown(
      store,
      stream,
      written.length === 0 ? 'no_stream' : written.length - 1,
      events,
    );
    written.push(...events);
    expect(outcome).toMatchObject({ revision: written.length - 1 });
    if (outcome !== 'stream_conflict') positions.push(outcome.position);
  }
  const events = await stored(store, stream);
  expect(idsOf(events)).toEqual(idsOf(written));
  expect(events.map((event) => event.position)).toEqual(expect.arrayContaining(positions));
}

async function race(store: EventStore, { first, second }: Schedule['race']): Promise<void> {
  const stream = newStream();
  const contenders = [newEvents(first), newEvents(second)];
  const outcomes = await Promise.all(
    contenders.map((events) => untilKnown(store, stream, 'no_stream', events)),
  );
  const winners = contenders.filter((_, index) => outcomes[index] !== 'stream_conflict');
  expect(winners).toHaveLength(1);
  expect(idsOf(await stored(store, stream))).toEqual(idsOf(winners[0] ?? []));
}

async function run({ node, store }: NodeAndStore, schedule: Schedule): Promise<void> {
  const faults = [...schedule.faults];
  node.faults.onAppend = () => faults.shift() ?? 'none';
  await Promise.all([
    ...schedule.writers.map((appends) => writeAlone(store, appends)),
    race(store, schedule.race),
  ]);
}

let lanes: NodeAndStore[];
beforeAll(async () => {
  lanes = await Promise.all(
    Array.from({ length: LANES }, () => openOnNode({ deadlineMs: DEADLINE_MS })),
  );
});
afterAll(() => Promise.all(lanes.map((lane) => lane.close())));

test('never duplicates an event or reports a false failure, whatever answers are lost', async () => {
  await Promise.all(
    lanes.map((lane) =>
      fc.assert(
        fc.asyncProperty(schedules, (schedule) => run(lane, schedule)),
        { numRuns: SCHEDULES_PER_LANE, endOnFailure: true },
      ),
    ),
  );
}, 300_000);
