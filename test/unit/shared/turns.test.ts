import { expect, test } from '@jest/globals';
import { setImmediate } from 'node:timers/promises';
import { ownTurn } from '../../../shared/turns.ts';

test('pieces of work are done one at a time, turns of the event loop apart, in the order of asking', async () => {
  const done: string[] = [];
  const work = async (name: string, pieces: number): Promise<void> => {
    for (let piece = 1; piece <= pieces; piece += 1) {
      await ownTurn('a');
      done.push(`${name}${piece}`);
    }
  };
  const all = Promise.all([work('a', 3), work('b', 2), work('c', 1)]);
  const counts: number[] = [];
  while (done.length < 6) {
    await setImmediate();
    counts.push(done.length);
  }
  await all;
  expect(done).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  const steps = counts.map((count, index) => count - (counts[index - 1] ?? 0));
  expect(Math.max(...steps)).toBe(1);
  // Others have the loop in between.
  expect(steps.filter((step) => step === 0).length).toBeGreaterThan(steps.length / 2);
});

test('what asks after a pause has its turn as well', async () => {
  await ownTurn('a');
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  await ownTurn('a');
});
