import { beforeEach, expect, test } from '@jest/globals';
import { presentHealth } from '../../../../../services/api/health/presenter.ts';
import { monitorReadModels } from '../../../../../services/process/health/readModelsHealth.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type { ProjectorBeat } from '../../../../../shared/ports/readModels.ts';

let now: number;
let beat: ProjectorBeat | undefined;
let away: boolean;
let unindexed: number;
let read: ReturnType<typeof monitorReadModels>;

beforeEach(() => {
  now = 0;
  away = false;
  unindexed = 0;
  beat = { lag: { events: 0, ms: 0 }, silent_ms: 300 };
  const answer = <Value>(value: Value) =>
    away ? Promise.reject(storeUnavailableError('PostgreSQL is away.')) : Promise.resolve(value);
  const asked = {
    projectorBeat: () => answer(beat),
    listParkedStreams: () => answer({ count: 0, streams: [] }),
    countUnindexed: () => answer(unindexed),
    distrustReason: () => answer(undefined),
  };
  read = monitorReadModels(asked, () => now);
});

const told = () => presentHealth({ ready: true, projection: read.health() });

test('read models that follow the log are caught up', async () => {
  await read.poll();
  expect(told()).toEqual({
    status: 'ready',
    projection: { caught_up: true, lag_events: 0, lag_ms: 0, parked_streams: [] },
  });
});

test('turns that are not found by their words yet are told', async () => {
  unindexed = 12;
  await read.poll();
  expect(told()).toMatchObject({ status: 'ready', projection: { unindexed_turns: 12 } });
});

test('read models that are more than 5 s behind the log are not, and say how far', async () => {
  beat = { lag: { events: 12, ms: 5_000 }, silent_ms: 300 };
  await read.poll();
  expect(told().status).toBe('ready');
  beat.lag.ms = 11_000;
  await read.poll();
  expect(told()).toEqual({
    status: 'degraded',
    projection: {
      caught_up: false,
      lag_events: 12,
      lag_ms: 11_000,
      reason: 'The read models are 11 s behind the log.',
      parked_streams: [],
    },
  });
});

test('a projector that has said nothing for 5 s is told, also between two looks, and until the next one speaks', async () => {
  beat!.silent_ms = 4_000;
  await read.poll();
  expect(told().status).toBe('ready');
  now += 3_000;
  expect(told()).toEqual({
    status: 'degraded',
    projection: {
      caught_up: false,
      lag_events: null,
      lag_ms: 7_000,
      reason: 'No projector keeps the read models up to date: none has reported for 7 s.',
      parked_streams: [],
    },
  });
  beat!.silent_ms = 10;
  await read.poll();
  expect(told().status).toBe('ready');
});

test('where no projector has ever said anything, it has 5 s to do so', async () => {
  beat = undefined;
  await read.poll();
  expect(told().status).toBe('ready');
  now += 6_000;
  await read.poll();
  expect(told().projection).toMatchObject({ caught_up: false, lag_ms: 6_000 });
});

test('a database that is away, or falls silent, is no health that was known before', async () => {
  expect(read.health).toThrow('does not answer');
  await read.poll();
  now += 6_000;
  expect(read.health).toThrow('does not answer');
  away = true;
  await expect(read.poll()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(read.health).toThrow('PostgreSQL is away.');
  away = false;
  await read.poll();
  expect(told().status).toBe('ready');
});
