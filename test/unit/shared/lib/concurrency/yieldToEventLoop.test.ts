import { expect, test } from '@jest/globals';
import { setImmediate } from 'node:timers/promises';
import {
  yieldToEventLoop,
  yieldForText,
} from '../../../../../shared/lib/concurrency/yieldToEventLoop.ts';

test('pieces of work are done one at a time, turns of the event loop apart, in the order of asking', async () => {
  const done: string[] = [];
  const work = async (name: string, pieces: number): Promise<void> => {
    for (let piece = 1; piece <= pieces; piece += 1) {
      await yieldToEventLoop('a');
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

test('the accounts take turns, however many pieces one of them has waiting', async () => {
  const done: string[] = [];
  const piece = async (account: string): Promise<void> => {
    await yieldToEventLoop(account);
    done.push(account);
  };
  const many = Array.from({ length: 20 }, () => piece('large'));
  while (done.length < 2) await setImmediate();
  const before = done.length;
  await Promise.all([piece('small'), piece('other')]);
  expect(done.slice(before).indexOf('small')).toBeLessThanOrEqual(1);
  expect(done.slice(before).indexOf('other')).toBeLessThanOrEqual(2);
  await Promise.all(many);
  expect(done).toHaveLength(22);
});

test('work on a short text is done at once, on a long one in its turn', async () => {
  let done = 0;
  const count = () => (done += 1);
  const work = [yieldForText('a', 100).then(count), yieldForText('a', 200_000).then(count)];
  await Promise.resolve().then(() => Promise.resolve());
  expect(done).toBe(1);
  await Promise.all(work);
  expect(done).toBe(2);
});

test('what asks after a pause has its turn as well', async () => {
  await yieldToEventLoop('a');
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  await yieldToEventLoop('a');
});
