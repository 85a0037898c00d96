import { expect, test } from '@jest/globals';
import {
  TRUSTED_AFTER_MS,
  CLOCK_TOLERANCE_MS,
  createClockJudge,
  SILENCE_MS,
} from '../../../../../shared/erasure/retention/judgeClock.ts';

const START = Date.UTC(2026, 10, 22);
const YEARS_MS = 5 * 365 * 86_400_000;

/** Clocks that a test sets, and a log that has just been written to. */
function setUp({
  newestAgo = 1_000,
  own = false,
}: { newestAgo?: number | null; own?: boolean } = {}) {
  const state = {
    now: START,
    monotonic: 1_000,
    own: START,
    newest: newestAgo === null ? undefined : START - newestAgo,
  };
  const judge = createClockJudge({
    now: () => state.now,
    monotonic: () => state.monotonic,
    newest: async () => state.newest,
    ...(own && { own: () => state.own }),
  });
  /** Time passes, for every clock. */
  const pass = (ms: number): void => {
    state.now += ms;
    state.own += ms;
    state.monotonic += ms;
  };
  return { state, judge, pass };
}

test('a clock that goes on as the monotonic one does is believed', async () => {
  const { judge, pass } = setUp();
  expect(await judge()).toEqual({ now: START });
  pass(9 * 3_600_000);
  expect(await judge()).toEqual({ now: START + 9 * 3_600_000 });
});

test('a clock that jumps, ahead or back, is not believed until it is back', async () => {
  const { state, judge, pass } = setUp();
  await judge();
  for (const jump of [YEARS_MS, -YEARS_MS, CLOCK_TOLERANCE_MS + 1]) {
    state.now += jump;
    expect((await judge()).problem).toMatch(jump > 0 ? /moved ahead by/ : /moved back by/);
    pass(TRUSTED_AFTER_MS * 2);
    expect((await judge()).problem).toMatch(/has moved/);
    state.now -= jump;
    expect((await judge()).problem).toBeUndefined();
  }
});

test('a clock that was years ahead from the start on is not believed, though new events agree with it', async () => {
  const { state, judge, pass } = setUp({ newestAgo: YEARS_MS });
  expect((await judge()).problem).toMatch(/1825 days old/);
  state.newest = state.now;
  pass(TRUSTED_AFTER_MS - 2_000);
  expect((await judge()).problem).toMatch(/believed once the process has been up for 24 h/);
  pass(2_000);
  expect((await judge()).problem).toBeUndefined();
});

test('a log that has been silent for weeks is no reason to doubt', async () => {
  expect((await setUp({ newestAgo: SILENCE_MS }).judge()).problem).toBeUndefined();
  expect((await setUp({ newestAgo: SILENCE_MS + 1 }).judge()).problem).toMatch(/30 days old/);
});

test('where the age of the newest event is not known it counts as old', async () => {
  const { judge, pass } = setUp({ newestAgo: null });
  expect((await judge()).problem).toMatch(/is not known/);
  pass(TRUSTED_AFTER_MS);
  expect((await judge()).problem).toBeUndefined();
});

test('a clock behind the newest event is not believed', async () => {
  const { state, judge } = setUp();
  state.newest = START + CLOCK_TOLERANCE_MS + 1;
  expect((await judge()).problem).toMatch(/newest event was recorded at 2026-11-22T00:05:00.001Z/);
});

test('the clock of a database is believed only while the own one agrees', async () => {
  const { state, judge } = setUp({ own: true });
  expect((await judge()).problem).toBeUndefined();
  state.own -= CLOCK_TOLERANCE_MS + 1;
  expect((await judge()).problem).toMatch(/clock of the database/);
});

test('a clock that says no time is not believed', async () => {
  const { state, judge } = setUp();
  state.now = Number.NaN;
  expect((await judge()).problem).toBe('The clock says no time.');
});
