import { beforeEach, expect, test } from '@jest/globals';
import {
  createOpenTurnQueue,
  type OpenTurnQueue,
} from '../../../../../shared/runs/recovery/openTurnQueue.ts';

let now: number;
let leftOpen: OpenTurnQueue;
beforeEach(() => {
  now = 0;
  leftOpen = createOpenTurnQueue(() => now);
});

test('a session is given to one at a time, and again a moment after it was put back, behind the others', () => {
  leftOpen.add('a', 1);
  leftOpen.add('b', 1);
  const first = leftOpen.take()!;
  leftOpen.retry(first);
  now = 250;
  expect([leftOpen.take()?.session_id, leftOpen.take()?.session_id, leftOpen.take()]).toEqual([
    'b',
    'a',
    undefined,
  ]);
});

test('what may still be written late is looked for after 1, 2, 4, 8 and 15 s, and then forgotten', () => {
  leftOpen.add('a', 1);
  const looks: number[] = [];
  for (; leftOpen.size > 0; now += 500) {
    const turn = leftOpen.take();
    if (!turn) continue;
    looks.push(now);
    leftOpen.recheck(turn);
  }
  expect(looks).toEqual([0, 1_000, 3_000, 7_000, 15_000, 30_000]);
});

test('what a run adds while its session is looked at counts for that look', () => {
  leftOpen.add('a', 1);
  const turn = leftOpen.take()!;
  leftOpen.add('a', 4);
  expect([turn.revision, leftOpen.take()]).toEqual([4, undefined]);
  leftOpen.remove(turn);
  expect(leftOpen.size).toBe(0);
});

test('it is bounded: the oldest make room', () => {
  for (let index = 0; index < 10_005; index += 1) leftOpen.add(`session_${index}`, 1);
  expect([leftOpen.size, leftOpen.take()?.session_id]).toEqual([10_000, 'session_5']);
});
