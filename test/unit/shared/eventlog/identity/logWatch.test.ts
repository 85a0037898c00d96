import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { createLogWatch } from '../../../../../shared/eventlog/identity/logWatch.ts';
import type { Position } from '../../../../../shared/ports/eventStore.ts';

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setTimeout', 'setImmediate'] }));
afterEach(() => void jest.useRealTimers());

const LIMIT_MS = 5_000;
const at = (position: number): Position => String(position).padStart(4, '0') as Position;

/** Checks at positions, a number of milliseconds after another. */
async function check(end: number, ...reached: [afterMs: number, position: number][]) {
  const watch = createLogWatch({ head: () => Promise.resolve(at(end)) }, LIMIT_MS);
  const answers: boolean[] = [];
  for (const [afterMs, position] of reached) {
    jest.advanceTimersByTime(afterMs);
    answers.push(await watch(at(position)));
  }
  return answers;
}

test('the end of the log is reported as reached', async () => {
  expect(await check(9, [0, 9])).toEqual([true]);
});

test('a long catch-up is not a fault, however far the end is, as long as events arrive', async () => {
  const answers = await check(9_000, [0, 10], [4_000, 20], [4_000, 30], [4_000, 40], [4_000, 50]);
  expect(answers).toEqual([false, false, false, false, false]);
});

test('a subscription that delivers nothing while the log goes on is a fault after the limit', async () => {
  await expect(check(9, [0, 5], [4_000, 5], [2_000, 5])).rejects.toMatchObject({
    code: 'store_unavailable',
    message: 'The event log continues to 0009, but its subscription delivers nothing after 0005.',
  });
});
