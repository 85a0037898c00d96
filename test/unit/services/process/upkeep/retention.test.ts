import { expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JudgedTime } from '../../../../../shared/erasure/retention/judgeClock.ts';
import type { SweepResult } from '../../../../../shared/erasure/retention/sweepSessions.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type { RetentionHealth } from '../../../../../shared/health/health.ts';
import { presentHealth } from '../../../../../services/api/health/presenter.ts';
import { retentionPart } from '../../../../../services/process/upkeep/retention.ts';

/** A part whose parts a test sets, which sweeps again and again. */
async function setUp(changes: { needed?: boolean; problem?: string; alone?: boolean } = {}) {
  const state = {
    needed: true,
    alone: true,
    judged: (changes.problem === undefined
      ? { now: 5 }
      : { problem: changes.problem }) as JudgedTime,
    swept: { erased: 2, due: 3, held: 1, failed: 0 } as SweepResult | Error,
    sweeps: [] as number[],
    judgements: 0,
    ...changes,
  };
  const part = retentionPart({
    isNeeded: async () => state.needed,
    async judge() {
      state.judgements += 1;
      return state.judged;
    },
    async sweep(now) {
      state.sweeps.push(now);
      if (state.swept instanceof Error) throw state.swept;
      return state.swept;
    },
    async runExclusively(work) {
      if (state.alone) await work(new AbortController().signal);
      return state.alone;
    },
    logger: { warn: () => undefined, debug: () => undefined },
    pauses: { firstMs: 1, nextMs: 1 },
  });
  await part.prepare!(new AbortController().signal);
  const judgedFirst = state.judgements;
  const upkeep = part.upkeep!();
  const health = async () => (await part.health!()).retention;
  async function until(holds: (now: RetentionHealth | undefined) => boolean) {
    for (;;) {
      const now = await health();
      if (holds(now)) return now;
      await sleep(1);
    }
  }
  return { state, health, until, judgedFirst, end: () => upkeep[Symbol.asyncDispose]() };
}

test('the clock is judged before anything is served, and tells what the last sweep left', async () => {
  const { state, until, judgedFirst, end } = await setUp();
  expect(judgedFirst).toBe(1);
  const told = await until((now) => (now?.erased ?? 0) >= 4 && now?.state === 'waiting');
  expect(told).toMatchObject({ due: 3, held: 1, failed: 0 });
  expect(state.sweeps[0]).toBe(5);
  await end();
});

test('a clock that is not believed keeps everything, and health says why until it is', async () => {
  const { state, until, end } = await setUp({ problem: 'The clock has moved.' });
  const told = await until((now) => now?.state === 'refusing');
  expect(told?.reason).toBe('The clock has moved.');
  expect(state.sweeps).toEqual([]);
  expect(presentHealth({ ready: true, retention: told! })).toMatchObject({
    status: 'degraded',
    retention: { state: 'refusing', reason: 'The clock has moved.', due: null },
  });
  state.judged = { now: 7 };
  expect((await until((now) => now?.state === 'waiting' && now.erased > 0))?.reason).toBe(
    undefined,
  );
  expect(state.sweeps[0]).toBe(7);
  await end();
});

test('where no account has a maximum nothing is done, and nothing is told', async () => {
  const { state, health, end } = await setUp({ needed: false, problem: 'The clock has moved.' });
  while (state.judgements < 5) await sleep(1);
  expect(await health()).toBe(undefined);
  expect(state.sweeps).toEqual([]);
  await end();
});

test('while another process sweeps this one stands by', async () => {
  const { state, until, end } = await setUp({ alone: false });
  expect(await until((now) => now?.state === 'standing_by')).toMatchObject({ due: null });
  expect(state.sweeps).toEqual([]);
  await end();
});

test('a sweep that fails is told, quotes nothing that is not ours, and is tried again', async () => {
  const { state, until, end } = await setUp();
  state.swept = new Error('a secret');
  expect((await until((now) => now?.state === 'failing'))?.reason).toMatch(
    /see the log for the reason/,
  );
  state.swept = storeUnavailableError('The store is away.');
  await until((now) => now?.reason === 'The store is away.');
  state.swept = { erased: 0, due: 0, held: 0, failed: 0 };
  expect((await until((now) => now?.state === 'waiting'))?.due).toBe(0);
  await end();
});
