import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { createIndexedCache } from '../../../../../shared/lib/memory/indexedCache.ts';
import {
  loadSession,
  type LoadedSession,
} from '../../../../../shared/sessions/history/loadSession.ts';
import {
  loadCachedSession,
  originIds,
  type SessionCache,
} from '../../../../../shared/runs/queueing/sessionCache.ts';
import type { SessionEvent } from '../../../../../shared/sessions/events.ts';
import type { Turn } from '../../../../../shared/sessions/turns/prompt.ts';
import { appendEvents, NO_STREAM, type StreamHead } from '../../../../../shared/eventlog/append.ts';
import {
  createDamagedStreams,
  type DamagedStreams,
} from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { sessionStream } from '../../../../../shared/eventlog/streams.ts';
import { commitEventTexts } from '../../../../../shared/eventlog/encryption/sealTexts.ts';
import type { ProtectedStore } from '../../../../../shared/eventlog/encryption/protectedStore.ts';
import {
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnInterrupted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../../../../support/jest/size.ts';

const SESSION = 'session_1';
let fixture: SqliteEventStoreFixture;
let memory: SessionCache;
let eventsRead: number;
let reads: number;
let store: ProtectedStore;
let damaged: DamagedStreams;

beforeEach(async () => {
  fixture = await eventStoreFixture();
  memory = createIndexedCache({ maxSize: 10, sizeCalculation: () => 1, groupsOf: originIds });
  damaged = createDamagedStreams(() => undefined);
  eventsRead = 0;
  reads = 0;
  store = {
    ...fixture.store(),
    async readStream(stream, options) {
      const events = await fixture.store().readStream(stream, options);
      reads += 1;
      eventsRead += events.length;
      return events;
    },
  };
});
afterEach(async () => {
  jest.restoreAllMocks();
  await fixture.dispose();
});

/** A session that grows; each call appends one more turn's events. */
function growingSession(sessionId = SESSION) {
  let head: StreamHead = NO_STREAM;
  let turn = 0;
  const authorship = {
    account_id: 'acct_1',
    key_id: 'key_1',
    request_id: 'r',
    causation_id: 'r',
    recorded_at: '2026-11-21T09:00:00.000Z',
  };
  return async (ending: (turn: number) => SessionEvent[]): Promise<void> => {
    turn += 1;
    const events = [...(turn === 1 ? [sessionStarted()] : []), turnStarted(turn), ...ending(turn)];
    const named = events.map((event) => ({ id: randomUUID(), ...event }));
    const sealed = await commitEventTexts(store.keys, head.key, named);
    const target = { stream: sessionStream(sessionId), head };
    ({ head } = await appendEvents(store, target, { ...sealed, authorship }));
  };
}

const newest = (count: number) => (turns: Turn[]) =>
  Promise.resolve(turns.slice(Math.max(0, turns.length - count)));
const shown = ({ state, head, lastEventId, account_id, history }: LoadedSession) => ({
  state,
  head,
  lastEventId,
  account_id,
  history,
});
const source = () => ({ store, damaged, memory, setOrigins: () => undefined });
const recall = (count: number) => loadCachedSession(source(), SESSION, newest(count));

const completed = (turn: number): SessionEvent[] => [turnCompleted(turn)];
const ENDINGS = [
  completed,
  (turn: number) => [
    toolCalled(turn, { call_id: 'call_1' }),
    toolCalled(turn, { round: 2, call_id: 'call_2' }),
    turnCompleted(turn),
  ],
  (turn: number) => [turnFailed(turn)],
  (turn: number) => [toolCalled(turn, { call_id: 'call_1' }), turnInterrupted(turn)],
];

test('a session that is remembered is what reading it would give, however it went on and however much of it is wanted', async () => {
  let run = 0;
  const steps = fc.array(
    fc.record({
      turns: fc.array(fc.constantFrom(...ENDINGS), { maxLength: 8 }),
      wanted: fc.nat(12),
    }),
    { minLength: 1, maxLength: 8 },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (taken) => {
      run += 1;
      const sessionId = `session_p${run}`;
      const grow = growingSession(sessionId);
      await grow(completed);
      for (const { turns, wanted } of taken) {
        for (const ending of turns) await grow(ending);
        const recalled = await loadCachedSession(source(), sessionId, newest(wanted));
        expect(shown(recalled)).toEqual(
          shown(await loadSession({ store, damaged }, sessionId, newest(wanted))),
        );
      }
    }),
    { numRuns: size({ small: 30, full: 60 }) },
  );
});

test('a run of a remembered session reads no more than a run or two may have added', async () => {
  const grow = growingSession();
  for (let turn = 0; turn < 100; turn += 1) await grow(completed);
  await recall(20);
  await grow(completed);
  eventsRead = 0;
  expect((await recall(20)).history.map(({ turn }) => turn)).toEqual(
    Array.from({ length: 20 }, (_, index) => index + 82),
  );
  expect(eventsRead).toBeLessThanOrEqual(12);
});

test('a turn that is open is not remembered: how it ended is read', async () => {
  const grow = growingSession();
  await grow(completed);
  await grow(() => []);
  expect((await recall(5)).state.status).toBe('running');
  expect(memory.size).toBe(0);
});

test('what is remembered is let go where the stream does not hold it', async () => {
  const grow = growingSession();
  await grow(completed);
  await recall(5);
  memory.set(SESSION, { ...memory.get(SESSION)!, lastEventId: randomUUID(), turns: [] });
  expect((await recall(5)).history.map(({ turn }) => turn)).toEqual([1]);
});

/** The stream loses its events before that revision. */
function hideBefore(revision: number): void {
  const { readStream } = store;
  store.readStream = async (...read) =>
    (await readStream(...read)).filter((event) => event.revision >= revision);
}

test('that a long session has its beginning is asked for once in half a minute, and then noticed to be gone', async () => {
  const clock = jest.spyOn(performance, 'now').mockReturnValue(0);
  const grow = growingSession();
  for (let turn = 0; turn < 20; turn += 1) await grow(completed);
  await recall(2);
  hideBefore(10);
  reads = 0;
  clock.mockReturnValue(29_999);
  for (let run = 0; run < 5; run += 1) await recall(2);
  expect([reads, damaged.list()]).toEqual([5, []]);
  clock.mockReturnValue(30_000);
  await expect(recall(2)).rejects.toMatchObject({ code: 'stream_damaged' });
  expect(damaged.has(sessionStream(SESSION))).toBe(true);
});

test('a session whose newest page reaches its beginning is not asked for that again, however old it is', async () => {
  const clock = jest.spyOn(performance, 'now').mockReturnValue(0);
  const grow = growingSession();
  for (let turn = 0; turn < 3; turn += 1) await grow(completed);
  await recall(2);
  reads = 0;
  for (let run = 1; run <= 5; run += 1) {
    clock.mockReturnValue(run * 20_000);
    await recall(2);
  }
  expect(reads).toBe(5);
  hideBefore(1);
  await expect(recall(2)).rejects.toMatchObject({ code: 'stream_damaged' });
});

test('what is remembered is not decoded again', async () => {
  const grow = growingSession();
  for (let turn = 0; turn < 5; turn += 1) await grow(completed);
  const { state } = await recall(2);
  const { readStream } = store;
  store.readStream = async (...read) =>
    (await readStream(...read)).map((event) =>
      Object.defineProperty({ ...event }, 'data', {
        get: () => expect(event.revision).toBeGreaterThan(10),
      }),
    );
  expect((await recall(2)).state).toEqual(state);
});
