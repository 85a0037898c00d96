import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  CLOCK_TOLERANCE_MS,
  createClockJudge,
  LATE_MS,
  type Clocks,
  type JudgedTime,
} from '../../../../../shared/erasure/retention/judgeClock.ts';
import type { KeptTime } from '../../../../../shared/erasure/retention/retentionStreams.ts';

const START = Date.UTC(2026, 10, 22);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365 * DAY_MS;

interface World {
  /** The true time. */
  time: number;
  /** How far the clock is ahead of it. */
  ahead: number;
  /** When the newest event was recorded, by the clock of that moment. */
  newest: number | 'empty' | undefined;
  kept: KeptTime | undefined;
}

/** A machine with a clock that a test sets, and the log that outlives its processes. */
function setUp(changes: Partial<World> = {}, clocks: Partial<Clocks> = {}) {
  const world: World = {
    time: START,
    ahead: 0,
    newest: START - 1_000,
    kept: undefined,
    ...changes,
  };
  const clock = (): number => world.time + world.ahead;
  /** A process begins. */
  function boot() {
    const begunAt = world.time;
    const { judge, provenTime } = createClockJudge({
      now: clock,
      monotonic: () => world.time - begunAt,
      newest: async () => world.newest,
      kept: async () => world.kept,
      ...clocks,
    });
    /** Records the proven time, as a sweep does. */
    async function keep(): Promise<void> {
      const proven = await provenTime();
      if (!proven || proven.time <= (world.kept?.time ?? -Infinity)) return;
      const { time, confirmations } = proven;
      world.kept = { time, confirmations, fromRevision: 0 };
    }
    return { judge, keep };
  }
  const confirm = (): void => {
    const confirmations = (world.kept?.confirmations ?? 0) + 1;
    world.kept = { time: clock(), confirmations, fromRevision: 0 };
  };
  return { world, clock, boot, confirm };
}

const timeOf = ({ now }: JudgedTime & { now?: number }): number => now ?? -Infinity;

test('a clock that goes on as the monotonic one does is believed', async () => {
  const { world, boot } = setUp();
  const { judge } = boot();
  expect(await judge()).toEqual({ now: START - 1_000 });
  world.time += 9 * HOUR_MS;
  expect(await judge()).toEqual({ now: START - 1_000 + 9 * HOUR_MS });
});

test('a log that was empty when the process began is believed from the clock', async () => {
  expect(await setUp({ newest: 'empty' }).boot().judge()).toEqual({ now: START });
});

test('a clock that jumps, ahead or back, is not believed until it is back', async () => {
  const { world, boot } = setUp();
  const { judge } = boot();
  await judge();
  for (const jump of [5 * YEAR_MS, -5 * YEAR_MS, CLOCK_TOLERANCE_MS + 1]) {
    world.ahead += jump;
    expect((await judge()).problem).toMatch(jump > 0 ? /moved ahead by/ : /moved back by/);
    world.time += 2 * DAY_MS;
    expect((await judge()).problem).toMatch(/has moved/);
    world.ahead -= jump;
    expect((await judge()).problem).toBeUndefined();
  }
});

test('a clock that was ahead at a start sets nothing ahead, after any number of runs and restarts', async () => {
  const { world, clock, boot } = setUp();
  for (const ahead of [40 * DAY_MS, 80 * DAY_MS, 5 * YEAR_MS]) {
    world.ahead = ahead;
    for (let restart = 0; restart < 3; restart += 1) {
      const { judge, keep } = boot();
      const judged = await judge();
      expect(timeOf(judged)).toBeLessThanOrEqual(world.time);
      expect(judged.late).toMatch(/retention confirm clock --today <date> --reason <text>/);
      await keep();
      world.newest = clock();
      world.time += HOUR_MS;
      expect(timeOf(await judge())).toBeLessThanOrEqual(world.time);
      await keep();
    }
  }
});

test('time without a process does not count until an operator confirms the clock', async () => {
  const { world, boot, confirm } = setUp();
  const first = boot();
  await first.judge();
  await first.keep();
  world.time += LATE_MS + HOUR_MS;
  const { judge } = boot();
  expect(await judge()).toMatchObject({
    now: START - 1_000,
    late: expect.stringMatching(/1 day ahead/),
  });
  confirm();
  expect(await judge()).toEqual({ now: world.time });
  world.time += HOUR_MS;
  expect(await judge()).toEqual({ now: world.time });
});

test('a confirmation also sets the proven time back, for every process', async () => {
  const { world, boot, confirm } = setUp({ ahead: YEAR_MS, newest: 'empty' });
  const { judge, keep } = boot();
  await judge();
  await keep();
  world.ahead = 0;
  const restarted = boot();
  expect((await restarted.judge()).problem).toMatch(/it is at least 2027-11-22.*retention confirm/);
  confirm();
  expect(await restarted.judge()).toEqual({ now: world.time });
});

test('where the age of the newest event is not known an operator has to confirm the clock', async () => {
  const { boot, confirm } = setUp({ newest: undefined });
  const { judge } = boot();
  expect((await judge()).problem).toMatch(/is not known.*retention confirm clock/);
  confirm();
  expect(await judge()).toEqual({ now: START });
});

test('the cosignatures of witnesses show that time has passed', async () => {
  const seen: { time: number | undefined } = { time: undefined };
  const { world, boot } = setUp({}, { evidence: async () => seen.time });
  await boot().judge();
  world.time += 90 * DAY_MS;
  const { judge } = boot();
  expect((await judge()).late).toMatch(/90 days/);
  for (const nonsense of [Number.NaN, -1, 8.64e15, Number.MAX_SAFE_INTEGER, undefined]) {
    seen.time = nonsense;
    expect(timeOf(await judge())).toBe(START - 1_000);
  }
  seen.time = world.time - MINUTE_MS;
  expect(await judge()).toEqual({ now: seen.time });
});

test('the clock of a database is believed only while the own one agrees', async () => {
  const own = { off: 0 };
  for (const isIndependent of [false, true]) {
    const { world, boot } = setUp(
      {},
      { own: (): number => world.time + world.ahead + own.off, isIndependent },
    );
    own.off = 0;
    await boot().judge();
    world.time += 90 * DAY_MS;
    const { judge } = boot();
    own.off = CLOCK_TOLERANCE_MS + 1;
    expect((await judge()).problem).toMatch(/clock of the database/);
    own.off = Number.NaN;
    expect((await judge()).problem).toMatch(/clock of the database/);
    own.off = 0;
    // A database on the same machine has the same wrong clock.
    expect(timeOf(await judge())).toBe(isIndependent ? world.time : START - 1_000);
  }
});

test.each([Number.NaN, Infinity, -1, Date.UTC(10_001, 0, 1)])(
  'a clock that says no time is not believed: %d',
  async (now) => {
    const { boot } = setUp({}, { now: () => now });
    expect((await boot().judge()).problem).toBe('The clock says no time.');
  },
);

const LONG = 10 * YEAR_MS;
const step = fc.oneof(
  fc.record({ type: fc.constant('boot' as const), down: fc.integer({ min: 0, max: 9 * DAY_MS }) }),
  fc.record({ type: fc.constant('run' as const), up: fc.integer({ min: 0, max: 9 * DAY_MS }) }),
  fc.record({ type: fc.constant('set' as const), ahead: fc.integer({ min: -LONG, max: LONG }) }),
  fc.record({ type: fc.constant('right' as const) }),
);

test('whatever the clock says, at starts and in between, the time is never later than the true one', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { world, clock, boot, confirm } = setUp();
      let process = boot();
      await process.judge();
      await process.keep();
      for (const taken of steps) {
        if (taken.type === 'boot') {
          world.time += taken.down;
          process = boot();
        } else if (taken.type === 'run') {
          // The newest event has the time of the clock, right or wrong.
          world.newest = clock();
          world.time += taken.up;
        } else if (taken.type === 'set') world.ahead = taken.ahead;
        else {
          world.ahead = 0;
          confirm();
        }
        expect(timeOf(await process.judge())).toBeLessThanOrEqual(world.time);
        await process.keep();
        expect(world.kept!.time).toBeLessThanOrEqual(world.time);
      }
    }),
    { numRuns: 300 },
  );
});

test('while the clock is right and a process is up, the time is as late as the stops were long', async () => {
  const stops = fc.array(fc.integer({ min: 0, max: 9 * DAY_MS }), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(stops, async (downs) => {
      const { world, boot } = setUp({ newest: START });
      let late = 0;
      for (const down of downs) {
        const { judge, keep } = boot();
        await judge();
        world.time += HOUR_MS;
        expect(world.time - timeOf(await judge())).toBe(late);
        await keep();
        world.time += down;
        late += down;
      }
    }),
    { numRuns: 100 },
  );
});
