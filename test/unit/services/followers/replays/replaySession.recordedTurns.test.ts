import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { readRecordedTurns } from '../../../../../services/followers/replays/replaySession.ts';
import { appendEvents, NO_STREAM } from '../../../../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { sessionStream } from '../../../../../shared/eventlog/streams.ts';
import {
  sessionCompacted,
  sessionStarted,
  turnCompleted,
  turnFailed,
  turnStarted,
} from '../../../../support/builders/events.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';

let fixture: SqliteEventStoreFixture;
beforeEach(async () => void (fixture = await eventStoreFixture()));
afterEach(() => fixture.dispose());

const EVENTS = [
  sessionStarted(),
  turnStarted(1),
  turnCompleted(1),
  turnStarted(2),
  turnFailed(2),
  sessionCompacted(1, 1),
  turnStarted(3),
  turnCompleted(3),
];

test.each([
  [true, 3],
  [false, 1],
])(
  'reads each turn once, and again from the log after it gave way (%s)',
  async (isWanted, reads) => {
    const authorship = {
      account_id: 'acct_1',
      key_id: 'key_1',
      request_id: 'request_1',
      causation_id: 'request_1',
      recorded_at: '2026-11-21T09:00:00.000Z',
    };
    const events = EVENTS.map((event) => ({ id: randomUUID(), ...event }));
    const stream = sessionStream('session_1');
    await appendEvents(fixture.store(), { stream, head: NO_STREAM }, { events, authorship });
    const store = fixture.store();
    const steps: string[] = [];
    const source = {
      damaged: createDamagedStreams(() => undefined),
      store: {
        ...store,
        readStream: (...read: Parameters<typeof store.readStream>) => {
          if (steps.at(-1) !== 'read') steps.push('read');
          return store.readStream(...read);
        },
      },
    };
    const sessionMemory = {
      isWanted: () => isWanted,
      yieldToWaiters: async () => void steps.push('gave way'),
    };
    const recorded = { session_id: 'session_1', revision: EVENTS.length - 1 };
    const signal = AbortSignal.timeout(4_000);
    const read = [];
    for await (const { started, compactions } of readRecordedTurns(
      source,
      recorded,
      sessionMemory,
      signal,
    ))
      read.push([started.turn, compactions.length]);
    expect(read).toEqual([
      [1, 0],
      [2, 0],
      [3, 1],
    ]);
    expect(steps).toEqual(
      Array.from({ length: reads }, () => ['gave way', 'read'])
        .flat()
        .slice(1),
    );
  },
);
