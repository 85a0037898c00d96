import { expect, test } from '@jest/globals';
import { setImmediate } from 'node:timers/promises';
import {
  noteRequest,
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

const spend = (ms: number): void => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

/** A task of some milliseconds in its turn, with the times at which it began and ended. */
async function longTask(account: string): Promise<{ began: number; ended: number }> {
  await yieldToEventLoop(account);
  const began = performance.now();
  spend(5);
  return { began, ended: performance.now() };
}

/** How many turns of the event loop pass between a long task of an account and its next one. */
async function turnsBetweenTasks(account: string): Promise<number> {
  await longTask(account);
  const next = longTask(account);
  let isOver = false;
  void next.then(() => (isOver = true));
  let turns = 0;
  for (; !isOver; turns += 1) await setImmediate();
  return turns;
}

test('while others send requests, an account rests after a task for as long as that took', async () => {
  noteRequest('other', performance.now());
  const first = longTask('a');
  const second = longTask('a');
  expect((await second).began - (await first).ended).toBeGreaterThan(4);
});

test('an account that is alone does not rest', async () => {
  const long = performance.now() - 2_000;
  noteRequest('other', long);
  noteRequest('a', performance.now());
  expect(await turnsBetweenTasks('a')).toBeLessThan(20);
  noteRequest('other', performance.now());
  expect(await turnsBetweenTasks('a')).toBeGreaterThan(20);
});

test('the tasks of others run while an account rests', async () => {
  noteRequest('other', performance.now());
  const done: string[] = [];
  const note = async (account: string): Promise<void> => {
    await longTask(account);
    done.push(account);
  };
  await note('large');
  const rest = note('large');
  // The event loop has found nothing that may run.
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  await note('small');
  await rest;
  expect(done).toEqual(['large', 'small', 'large']);
});
