/**
 * Restarts with wrong clocks, which record events and sweep: nothing is erased before its time, and
 * a clock that is set right and confirmed has everything erased that is due.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { size } from '../../support/jest/size.ts';
import { runCliWith } from '../../support/processes/cliProcess.ts';
import { forgedStores } from '../../support/stores/forger/forgedService.ts';
import { openMachine, type Machine } from '../../support/stores/forger/machine.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365 * DAY_MS;
const START = Date.UTC(2026, 10, 25, 12);
const MAXIMUM_DAYS = 10;
const RESTARTS = size({ small: 12, full: 200 });
/** Days, years, the year 10001 and 1970. */
const WRONG_MS = [
  ...[1, 2, 9, 11, 40, 400, 3_650].flatMap((days) => [days * DAY_MS, -days * DAY_MS]),
  7_975 * YEAR_MS,
  -START,
  Number.NaN,
];

/** Numbers from 0 to 1, the same in each run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

let resources = new AsyncDisposableStack();
afterEach(async () => {
  await resources.disposeAsync();
  resources = new AsyncDisposableStack();
});

describe.each(await forgedStores())('on $name', (kind) => {
  let env: Record<string, string>;
  const open = async (
    start: number,
    asking: { accounts?: number; percent?: number } = {},
  ): Promise<Machine> => {
    ({ env } = resources.adopt(await kind.open(), ({ close }) => close()));
    const retention = { maximum_days: MAXIMUM_DAYS };
    const machine = await openMachine(env, { retention, start, ...asking });
    return resources.adopt(machine, ({ close }) => close());
  };

  test(
    'restarts with wrong clocks erase nothing before its time',
    async () => {
      const machine = await open(START - 12 * DAY_MS);
      const { world } = machine;
      const next = random(7);
      const pick = <Item>(items: readonly Item[]): Item =>
        items[Math.floor(next() * items.length)]!;
      /** The true time of the last event, by session. */
      const active = new Map<string, number>();
      const begin = async () => active.set(await machine.begin(), world.time);
      const erased = new Set<string>();
      async function checkErased(earlyMs = 0): Promise<void> {
        for (const [session_id, at] of active) {
          if (erased.has(session_id) || !(await machine.isErased(session_id))) continue;
          erased.add(session_id);
          expect(world.time - at + earlyMs).toBeGreaterThanOrEqual(MAXIMUM_DAYS * DAY_MS);
        }
      }
      /** A new session, and another event of an old one; a clock that says no time records nothing. */
      async function record(): Promise<void> {
        const now = world.time + world.ahead;
        if (!(now >= 0 && now < Date.UTC(10_000, 0))) return;
        await begin();
        const session_id = pick([...active.keys()].filter((id) => !erased.has(id)));
        await machine.continue(session_id);
        active.set(session_id, world.time);
      }

      const first = await machine.boot();
      for (; world.time < START; world.time += 12 * HOUR_MS) await begin();
      await first.sweep();
      await checkErased();
      for (let restart = 0; restart < RESTARTS; restart += 1) {
        world.time += next() * HOUR_MS;
        world.ahead = pick([0, ...WRONG_MS]);
        const running = await machine.boot();
        await record();
        await running.sweep();
        await checkErased();
        world.time += next() * 6 * HOUR_MS;
        if (next() < 0.5) world.ahead = pick([0, ...WRONG_MS]);
        await record();
        await running.sweep();
        await checkErased();
      }
      const count = erased.size;

      world.ahead = 0;
      const last = await machine.boot();
      // What a clock recorded that was behind may go early by the stops that are confirmed now.
      const late = world.time - (await machine.provenTime());
      await machine.confirm();
      await last.sweep();
      await checkErased(late);
      world.time += MAXIMUM_DAYS * DAY_MS + HOUR_MS;
      await last.sweep();
      await checkErased(late);
      expect(erased.size).toBeGreaterThan(count);
    },
    size({ small: 60_000, full: 1_800_000 }),
  );

  test('a clock ahead at the start is not believed after a run and a restart', async () => {
    const machine = await open(START);
    const { world } = machine;
    const sessions: string[] = [];
    const right = await machine.boot();
    while (sessions.length < 6) sessions.push(await machine.begin());
    await right.sweep();
    world.ahead = 40 * DAY_MS;
    for (let restart = 0; restart < 3; restart += 1) {
      const running = await machine.boot();
      world.time += HOUR_MS;
      await machine.begin();
      const { reason } = await running.sweep();
      expect(reason).toMatch(/the clock is 40 days ahead.*retention confirm clock/);
    }
    for (const session_id of sessions) expect(await machine.isErased(session_id)).toBe(false);
  });

  test.each([
    ['the twelve sessions of an account', 1, 12],
    ['many small accounts', 30, 4],
  ])(
    'a wrong clock that an operator confirms erases nothing of %s before another confirmation',
    async (_whose, accounts, each) => {
      const machine = await open(START, { accounts, percent: 20 });
      const { world } = machine;
      const sessions: string[] = [];
      for (const account of machine.accounts)
        for (let count = 0; count < each; count += 1)
          sessions.push(await machine.begin({}, account));
      const sweep = async () => (await machine.boot()).sweep();
      await sweep();
      world.ahead = 40 * DAY_MS;
      await machine.confirm();
      for (let restart = 0; restart < 3; restart += 1) {
        world.time += HOUR_MS;
        const { reason, ...counts } = await sweep();
        expect(counts).toMatchObject({ erased: 0, due: sessions.length });
        expect(reason).toContain(`${sessions.length} of the ${sessions.length} sessions of `);
        expect(reason).toMatch(/Check the clock .* retention confirm \S+ --reason/);
      }
      // The clock is set right and confirmed, and the sessions live until they are due.
      world.ahead = 0;
      await machine.confirm();
      expect(await sweep()).toMatchObject({ erased: 0, due: 0, reason: undefined });
      world.time += MAXIMUM_DAYS * DAY_MS - 4 * HOUR_MS;
      await machine.confirm();
      expect(await sweep()).toMatchObject({ erased: 0, due: 0 });
      for (const session_id of sessions) expect(await machine.isErased(session_id)).toBe(false);
      world.time += 2 * DAY_MS;
      await machine.confirm();
      expect(await sweep()).toMatchObject({ erased: 0, due: sessions.length });
      const confirm = ['retention', 'confirm', 'all', '--reason', 'They are old.', '--json'];
      const { code, out } = await runCliWith(env, ...confirm);
      expect([code, (JSON.parse(out) as unknown[]).length]).toEqual([0, accounts]);
      expect(await sweep()).toMatchObject({ erased: sessions.length, due: 0 });
    },
    120_000,
  );

  // docs/proof.md: inherent for few sessions, because no sweep asks about those of a day, or of a stop.
  test.each([
    ['that it makes due for some hours', 12, HOUR_MS],
    ['in all', 6, 30 * DAY_MS],
  ])('a wrong clock that an operator confirms erases few %s', async (_which, count, overdueMs) => {
    const machine = await open(START, { percent: 20 });
    for (let begun = 0; begun < count; begun += 1) await machine.begin();
    await (await machine.boot()).sweep();
    machine.world.ahead = MAXIMUM_DAYS * DAY_MS + overdueMs;
    await machine.confirm();
    const running = await machine.boot();
    expect(await running.sweep()).toMatchObject({ erased: count, due: 0 });
  });

  test('an event of a clock that is behind makes its session no older', async () => {
    const machine = await open(START - 40 * DAY_MS);
    const { world } = machine;
    const running = await machine.boot();
    world.time = START - HOUR_MS;
    await running.sweep();
    const old = await machine.begin();
    world.ahead = -20 * DAY_MS;
    await machine.continue(old);
    world.ahead = 0;
    for (let day = 0; day <= MAXIMUM_DAYS; day += 1) {
      world.time += HOUR_MS;
      await running.sweep();
      expect([day, await machine.isErased(old)]).toEqual([day, day >= MAXIMUM_DAYS]);
      world.time += DAY_MS - HOUR_MS;
    }
  });
});
