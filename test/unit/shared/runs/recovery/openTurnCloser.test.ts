import { randomUUID } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createOpenTurnCloser } from '../../../../../shared/runs/recovery/openTurnCloser.ts';
import {
  createOpenTurnQueue,
  type OpenTurnQueue,
} from '../../../../../shared/runs/recovery/openTurnQueue.ts';
import {
  createSessionQueue,
  type SessionQueue,
} from '../../../../../shared/runs/queueing/sessionQueue.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { appendEvents, headOf, NO_STREAM } from '../../../../../shared/eventlog/append.ts';
import { decodeEvent } from '../../../../../shared/eventlog/codec.ts';
import {
  createDamagedStreams,
  type DamagedStreams,
} from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { sessionStream } from '../../../../../shared/eventlog/streams.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';
import type { ProtectedStore } from '../../../../../shared/eventlog/encryption/protectedStore.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import {
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';

let fixture: SqliteEventStoreFixture;
let now: number;
let leftOpen: OpenTurnQueue;
let queue: SessionQueue;
let damaged: DamagedStreams;
let stopping: AbortController;
beforeEach(async () => {
  fixture = await eventStoreFixture();
  now = 0;
  leftOpen = createOpenTurnQueue(() => now);
  queue = createSessionQueue();
  damaged = createDamagedStreams(() => undefined);
  stopping = new AbortController();
});
afterEach(() => fixture.dispose());

const readAll = (id: string) =>
  fixture.store().readStream(sessionStream(id), { direction: 'forwards', limit: 100 });
const typesOf = async (id: string): Promise<string[]> =>
  (await readAll(id)).map(({ type }) => type.replace(/^session\.|\.v1$/g, ''));

async function append(id: string, ...events: { type: string; data: object }[]): Promise<void> {
  const last = (await readAll(id)).at(-1);
  const head = last ? headOf(decodeEvent(last)) : NO_STREAM;
  const authorship = {
    account_id: 'acct_1',
    key_id: 'k',
    request_id: 'r',
    causation_id: 'r',
    recorded_at: '2026-11-21T09:00:00.000Z',
  };
  await appendEvents(
    fixture.store(),
    { stream: sessionStream(id), head },
    { events: events.map((event) => ({ id: randomUUID(), ...event })), authorship },
  );
}

const closerOn = (store: ProtectedStore) =>
  createOpenTurnCloser({
    store,
    damaged,
    runState: { sessionQueue: queue, openTurnQueue: leftOpen },
    instance: { isGone: () => true, isOverdue: () => false },
    clock: { now: () => 0 },
    logger: createLogger('silent'),
    ids: { uuid: randomUUID, typeId: (prefix) => prefix },
  });

async function sweep(store: ProtectedStore = fixture.store()): Promise<void> {
  const closer = closerOn(store);
  closer.closeDue(stopping.signal);
  await eventually(
    async () => closer.whenIdle(),
    () => leftOpen.take() === undefined,
  );
  await closer.whenIdle();
}

test('an open turn is closed once, and one that ended in the meantime is left as it is', async () => {
  await append('open', sessionStarted(), turnStarted(1), toolCalled(1, { call_id: 'a' }));
  await append('ended', sessionStarted(), turnStarted(1), turnCompleted(1));
  for (const id of ['open', 'ended']) leftOpen.add(id, 2);
  await sweep();
  expect([await typesOf('open'), await typesOf('ended'), leftOpen.size]).toEqual([
    ['started', 'turn_started', 'tool_called', 'turn_interrupted'],
    ['started', 'turn_started', 'turn_completed'],
    0,
  ]);
});

test('a turn that begins late is closed when it is there', async () => {
  leftOpen.add('late', 0);
  await sweep();
  expect([await typesOf('late'), leftOpen.size]).toEqual([[], 1]);
  await append('late', sessionStarted(), turnStarted(1));
  now = 1_000;
  await sweep();
  expect([await typesOf('late'), leftOpen.size]).toEqual([
    ['started', 'turn_started', 'turn_interrupted'],
    0,
  ]);
});

test('a session that went on past the place of a lost append is done with', async () => {
  await append(
    'on',
    sessionStarted(),
    turnStarted(1),
    turnCompleted(1),
    turnStarted(2),
    turnCompleted(2),
  );
  leftOpen.add('on', 3);
  await sweep();
  expect(leftOpen.size).toBe(0);
});

test('a turn whose session goes on while it is being closed is closed after that', async () => {
  await append('moves', sessionStarted(), turnStarted(1));
  leftOpen.add('moves', 2);
  let moved = false;
  const store: ProtectedStore = {
    ...fixture.store(),
    append: async (...request) => {
      if (!moved) await append('moves', toolCalled(1, { call_id: 'a' }));
      moved = true;
      return fixture.store().append(...request);
    },
  };
  await sweep(store);
  expect(await typesOf('moves')).toEqual([
    'started',
    'turn_started',
    'tool_called',
    'turn_interrupted',
  ]);
});

test('sessions that can not be read keep no other back', async () => {
  const bad = Array.from({ length: 3 }, (_, index) => `bad_${index}`);
  const good = Array.from({ length: 200 }, (_, index) => `good_${index}`);
  for (const id of good) await append(id, sessionStarted(), turnStarted(1));
  await append('damaged', turnStarted(1));
  for (const id of [...bad, 'damaged', ...good]) leftOpen.add(id, 1);
  const store: ProtectedStore = {
    ...fixture.store(),
    readStream: (stream, options) =>
      stream.includes('bad')
        ? Promise.reject(storeUnavailableError('Away.'))
        : fixture.store().readStream(stream, options),
  };
  const closer = closerOn(store);
  await eventually(
    async () => closer.closeDue(stopping.signal),
    () => leftOpen.size === bad.length,
  );
  for (const id of good) expect((await typesOf(id)).at(-1)).toBe('turn_interrupted');
  expect(damaged.list().map(({ stream }) => stream)).toEqual([sessionStream('damaged')]);
});

test('a store that is away is asked by few, and the rest follow as soon as it answers one', async () => {
  const ids = Array.from({ length: 100 }, (_, index) => `session_${index}`);
  for (const id of ids) await append(id, sessionStarted(), turnStarted(1));
  for (const id of ids) leftOpen.add(id, 1);
  const { promise: back, resolve: comeBack } = Promise.withResolvers<void>();
  let waiting = 0;
  let most = 0;
  const store: ProtectedStore = {
    ...fixture.store(),
    async readStream(stream, options) {
      waiting += 1;
      most = Math.max(most, waiting);
      await back;
      // Long enough for all that may be at work together to be.
      await sleep(1);
      const events = await fixture.store().readStream(stream, options);
      waiting -= 1;
      return events;
    },
  };
  const closer = closerOn(store);
  for (let tick = 0; tick < 10; tick += 1) closer.closeDue(stopping.signal);
  await sleep(10);
  expect(most).toBe(4);
  comeBack();
  await eventually(
    async () => closer.whenIdle(),
    () => leftOpen.size === 0,
  );
  expect(most).toBe(16);
});

test('a session that is busy is left to its run, and looked at later', async () => {
  await append('busy', sessionStarted(), turnStarted(1));
  leftOpen.add('busy', 1);
  const leave = await queue.acquire('busy', 0, stopping.signal);
  await sweep();
  expect([(await typesOf('busy')).length, leftOpen.size]).toEqual([2, 1]);
  leave();
  now = 250;
  await sweep();
  expect(leftOpen.size).toBe(0);
});

test('a look that hangs although the store is there is given up, adds nothing later, and is done again', async () => {
  await append('hangs', sessionStarted(), turnStarted(1));
  leftOpen = createOpenTurnQueue();
  leftOpen.add('hangs', 1);
  const { promise: answer, resolve: answerAtLast } = Promise.withResolvers<void>();
  let reads = 0;
  const store: ProtectedStore = {
    ...fixture.store(),
    async readStream(...request) {
      reads += 1;
      if (reads === 1) await answer;
      return fixture.store().readStream(...request);
    },
  };
  const closer = closerOn(store);
  const began = performance.now();
  await eventually(
    async () => closer.closeDue(stopping.signal),
    () => leftOpen.size === 0,
  );
  expect(performance.now() - began).toBeLessThan(10_000);
  await append('hangs', turnStarted(2));
  answerAtLast();
  await sleep(50);
  expect(await typesOf('hangs')).toEqual([
    'started',
    'turn_started',
    'turn_interrupted',
    'turn_started',
  ]);
});

test('looks leave nothing behind on the signal that stops them, however many there were', async () => {
  setFlagsFromString('--expose_gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const seen: WeakRef<AbortSignal>[] = [];
  const { acquire } = queue;
  queue.acquire = (id, waitMs, signal) => {
    seen.push(new WeakRef(signal));
    return acquire(id, waitMs, signal);
  };
  const away = () => Promise.reject(storeUnavailableError('Away.'));
  const closer = closerOn({ ...fixture.store(), readStream: away });
  leftOpen.add('left', 1);
  for (let tick = 0; tick < 500; tick += 1) {
    now += 250;
    closer.closeDue(stopping.signal);
    await closer.whenIdle();
  }
  await sleep(10);
  collectGarbage();
  const alive = seen.filter((signal) => signal.deref() !== undefined);
  expect([seen.length, getEventListeners(stopping.signal, 'abort').length]).toEqual([500, 0]);
  expect(alive.length).toBeLessThan(50);
});

test('a look that hangs ends when it is told to stop, and its session stays to be closed', async () => {
  leftOpen.add('hangs', 1);
  const closer = closerOn({ ...fixture.store(), readStream: () => new Promise(() => undefined) });
  closer.closeDue(stopping.signal);
  await sleep(10);
  stopping.abort();
  await closer.whenIdle();
  expect([leftOpen.size, getEventListeners(stopping.signal, 'abort').length]).toEqual([1, 0]);
});

test('sessions that can not be closed, whatever the reason, keep no other back', async () => {
  const store: ProtectedStore = {
    ...fixture.store(),
    append: (stream, ...rest) =>
      stream.includes('poisoned')
        ? Promise.reject(new Error('this one never fits'))
        : fixture.store().append(stream, ...rest),
  };
  const names = (kind: string): string[] => Array.from({ length: 20 }, (_, n) => `${kind}_${n}`);
  const [poisoned, others] = [names('poisoned'), names('other')];
  for (const id of [...poisoned, ...others]) {
    await append(id, sessionStarted(), turnStarted(1));
    leftOpen.add(id, 1);
  }
  const closer = closerOn(store);
  await eventually(
    async () => {
      now += 250;
      closer.closeDue(stopping.signal);
      await closer.whenIdle();
      return leftOpen.size;
    },
    (left) => left === poisoned.length,
  );
  for (const id of others) expect((await typesOf(id)).at(-1)).toBe('turn_interrupted');
});
