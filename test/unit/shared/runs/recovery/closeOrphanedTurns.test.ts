import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { closeOrphanedTurns } from '../../../../../shared/runs/recovery/closeOrphanedTurns.ts';
import {
  createOpenTurnQueue,
  type OpenTurnQueue,
} from '../../../../../shared/runs/recovery/openTurnQueue.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { sessionStream } from '../../../../../shared/eventlog/streams.ts';
import { appendEvents, NO_STREAM, type StreamHead } from '../../../../../shared/eventlog/append.ts';
import {
  createDamagedStreams,
  type DamagedStreams,
} from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';
import type { ProtectedStore } from '../../../../../shared/eventlog/encryption/protectedStore.ts';
import type { Instances } from '../../../../../shared/ports/instances.ts';
import type { OpenTurn } from '../../../../../shared/ports/readModels.ts';
import { lagging } from '../../../../support/fakes/laggingStore.ts';
import { sessionStarted, toolCalled, turnStarted } from '../../../../support/builders/events.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const NOW = Date.UTC(2026, 10, 20, 9);
const LATER = new Date(NOW + 60_000).toISOString();

let fixture: SqliteEventStoreFixture;
let open: OpenTurn[];
let forgotten: string[];
let store: ProtectedStore;
let damaged: DamagedStreams;
let leftOpen: OpenTurnQueue;
/** How far this process's clock is ahead of that of the list, in milliseconds. */
let ahead: number;

beforeEach(async () => {
  fixture = await eventStoreFixture();
  open = [];
  forgotten = [];
  store = fixture.store();
  damaged = createDamagedStreams(() => undefined);
  leftOpen = createOpenTurnQueue();
  ahead = 0;
});
afterEach(() => fixture.dispose());

const authorship = {
  account_id: 'acct_1',
  key_id: 'key_1',
  request_id: 'r',
  causation_id: 'r',
  recorded_at: new Date(NOW).toISOString(),
};

async function openTurn(session_id: string, owner: string, deadline = LATER): Promise<StreamHead> {
  const started = turnStarted(1, { owner, deadline });
  const { head } = await appendEvents(
    fixture.store(),
    { stream: sessionStream(session_id), head: NO_STREAM },
    {
      events: [sessionStarted(), started].map((event) => ({ id: randomUUID(), ...event })),
      authorship,
    },
  );
  open.push({ session_id, account_id: 'acct_1', turn: 1, owner, deadline });
  return head;
}

const instances: Instances = {
  register: () => Promise.reject(new Error('not asked for')),
  listDeadInstances: async () => [{ instance_id: 'dead', last_beat_at: 'long ago' }],
  list: async () => ({ now: NOW, ids: new Set(['dead', 'alive', 'self']) }),
  forget: async ({ instance_id }) => void forgotten.push(instance_id),
  close: () => Promise.resolve(),
};

const sweep = (signal = new AbortController().signal): Promise<void> =>
  closeOrphanedTurns(
    {
      store,
      damaged,
      ids: { uuid: randomUUID, typeId: (prefix) => prefix },
      clock: { now: () => NOW + ahead },
      logger: createLogger('silent'),
      instances,
      own: { id: 'self', openTurnQueue: leftOpen },
      readModels: { listOpenTurns: async () => open },
      instanceMonitor: { poll: () => Promise.resolve(), isDead: (instance) => instance === 'dead' },
    },
    signal,
  );

async function endsOf(session_id: string): Promise<unknown[]> {
  const events = await fixture
    .store()
    .readStream(sessionStream(session_id), { direction: 'forwards', from: 2, limit: 10 });
  return events.map(({ type, data }) => [type, (JSON.parse(data) as { reason: string }).reason]);
}

test('a turn of a dead instance is closed once, whoever comes first and however often it is still shown as open', async () => {
  await openTurn('session_1', 'dead');
  await Promise.all([sweep(), sweep(), sweep()]);
  await sweep();
  expect(await endsOf('session_1')).toEqual([['session.turn_interrupted.v1', 'crash']]);
});

test('a sweep that is told to stop leaves the rest to the next one', async () => {
  await openTurn('session_1', 'dead');
  await sweep(AbortSignal.abort());
  expect(await endsOf('session_1')).toEqual([]);
});

test('a turn of an instance that nobody knows is left alone until it is past its deadline, by the clock of the list', async () => {
  ahead = 200_000;
  await openTurn('session_1', 'unknown', new Date(NOW - 14_000).toISOString());
  await openTurn('session_2', 'unknown', new Date(NOW - 16_000).toISOString());
  await sweep();
  expect([await endsOf('session_1'), await endsOf('session_2')]).toEqual([
    [],
    [['session.turn_interrupted.v1', 'deadline']],
  ]);
});

test('a turn of an instance that lives is left alone whatever its deadline says', async () => {
  await openTurn('session_1', 'alive', new Date(NOW - 3_600_000).toISOString());
  await sweep();
  expect(await endsOf('session_1')).toEqual([]);
});

test('an own turn past its deadline is noted as left open, and not interrupted while it may be running', async () => {
  await openTurn('session_1', 'self', new Date(NOW - 16_000).toISOString());
  await openTurn('session_2', 'self', new Date(NOW - 14_000).toISOString());
  await sweep();
  expect([await endsOf('session_1'), leftOpen.size, leftOpen.take()?.session_id]).toEqual([
    [],
    1,
    'session_1',
  ]);
});

test('a session that can not be read does not keep the others back', async () => {
  await fixture
    .store()
    .append(sessionStream('session_1'), 'no_stream', [
      { id: randomUUID(), type: 'session.started.v1', data: 'not JSON', metadata: 'not JSON' },
    ]);
  open.push({
    session_id: 'session_1',
    account_id: 'acct_1',
    turn: 1,
    owner: 'dead',
    deadline: LATER,
  });
  await openTurn('session_2', 'dead');
  await sweep();
  expect(await endsOf('session_2')).toHaveLength(1);
});

/**
 * Another node has events at the end of that stream which this one does not show: nothing can be
 * added to it.
 */
const stuck = (session_id: string): ProtectedStore => ({
  ...fixture.store(),
  append: (stream, ...rest) =>
    stream === sessionStream(session_id)
      ? Promise.reject(new TurnlogError('stream_conflict', 'The stream is elsewhere.'))
      : fixture.store().append(stream, ...rest),
});

test('a session that refuses its end for ever is noted as damaged, with few tries, and keeps nobody back', async () => {
  await openTurn('session_1', 'dead');
  await openTurn('session_2', 'dead');
  let tries = 0;
  const refusing = stuck('session_1');
  store = {
    ...refusing,
    append(stream, ...rest) {
      tries += 1;
      if (tries > 200) return Promise.reject(new Error('It tries without a pause.'));
      return refusing.append(stream, ...rest);
    },
  };
  await sweep();
  expect([await endsOf('session_2'), damaged.list().map(({ stream }) => stream)]).toEqual([
    [['session.turn_interrupted.v1', 'crash']],
    [sessionStream('session_1')],
  ]);
  expect(tries).toBeLessThan(50);
});

test('a session to which others keep appending is neither damaged nor the end of a sweep', async () => {
  let head = await openTurn('session_1', 'dead');
  store = {
    ...fixture.store(),
    async append(stream, ...rest) {
      const events = [{ id: randomUUID(), ...toolCalled(1, { call_id: randomUUID() }) }];
      const other = await appendEvents(fixture.store(), { stream, head }, { events, authorship });
      ({ head } = other);
      return fixture.store().append(stream, ...rest);
    },
  };
  await sweep();
  expect(damaged.list()).toEqual([]);
});

test('a sweep that is told to stop does not wait for a session that is in doubt', async () => {
  await openTurn('session_1', 'dead');
  store = stuck('session_1');
  const began = performance.now();
  const stopping = new AbortController();
  setTimeout(() => stopping.abort(), 100);
  await sweep(stopping.signal);
  expect([performance.now() - began < 3_000, damaged.list()]).toEqual([true, []]);
});

test('sessions that are gone are noted after some seconds, all of them together', async () => {
  open = Array.from({ length: 10 }, (_, index) => `gone_${index}`).map((session_id) => ({
    session_id,
    account_id: 'acct_1',
    turn: 1,
    owner: 'dead',
    deadline: LATER,
  }));
  const began = performance.now();
  await sweep();
  const ms = performance.now() - began;
  expect([damaged.list().length, ms > 4_900, ms < 7_000]).toEqual([10, true, true]);
});

test('a session that was found damaged is left alone by the sweeps of the next minute', async () => {
  let now = 0;
  damaged = createDamagedStreams(
    () => undefined,
    () => now,
  );
  await openTurn('session_1', 'dead');
  let reads = 0;
  store = {
    ...fixture.store(),
    readStream() {
      reads += 1;
      return Promise.reject(new TurnlogError('stream_damaged', 'Deleted.'));
    },
  };
  await sweep();
  const once = reads;
  for (now = 2_000; now < 60_000; now += 2_000) await sweep();
  expect([once > 0, reads]).toEqual([true, once]);
  await sweep();
  expect(reads).toBe(2 * once);
});

test('a session that a node shows late is closed, and nobody calls it damaged', async () => {
  await openTurn('session_1', 'dead');
  store = lagging(fixture.store(), -1, 1_000);
  await sweep();
  expect([await endsOf('session_1'), damaged.list()]).toEqual([
    [['session.turn_interrupted.v1', 'crash']],
    [],
  ]);
});

test('instances that have been dead for long are taken out of the list', async () => {
  await sweep();
  expect(forgotten).toEqual(['dead']);
});
