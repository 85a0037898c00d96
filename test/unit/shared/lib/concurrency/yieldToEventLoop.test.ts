import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import {
  markAccountActive,
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
  await setImmediate();
});

/** A clock that stands still unless it is advanced, and an event loop with time to notice that. */
function stoppedClock() {
  let now = performance.now() + 3_600_000;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  return {
    advance: (ms: number): void => void (now += ms),
    async settle(): Promise<void> {
      await sleep(30);
      for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    },
  };
}

describe('an account whose task took long', () => {
  /** The last task has ended before the clock changes. */
  afterEach(async () => {
    await setImmediate();
    jest.restoreAllMocks();
  });

  /** Runs tasks on a stopped clock, which each advance it. */
  function tasks() {
    const clock = stoppedClock();
    const done: string[] = [];
    const run = async (account: string, ms: number): Promise<void> => {
      await yieldToEventLoop(account);
      clock.advance(ms);
      done.push(account);
    };
    return { clock, done, run };
  }

  test.each([
    [5, 4.9],
    [1, 0.9],
    [100, 19.9],
  ])('rests while others send requests: after %d ms, more than %d ms', async (tookMs, restMs) => {
    const { clock, done, run } = tasks();
    markAccountActive('other');
    markAccountActive('a');
    await run('a', tookMs);
    const next = run('a', 0);
    await clock.settle();
    clock.advance(restMs);
    await clock.settle();
    expect(done).toEqual(['a']);
    clock.advance(0.2);
    await next;
  });

  test('rests after several short tasks for as long as all of them took', async () => {
    const { clock, done, run } = tasks();
    markAccountActive('other');
    markAccountActive('short');
    await run('short', 0.4);
    await run('short', 0.4);
    await run('short', 0.4);
    const next = run('short', 0);
    await clock.settle();
    clock.advance(1.1);
    await clock.settle();
    expect(done).toHaveLength(3);
    clock.advance(0.2);
    await next;
  });

  test('does not rest without requests of others in the last second', async () => {
    const { clock, run } = tasks();
    markAccountActive('other');
    clock.advance(1_001);
    markAccountActive('a');
    await run('a', 5);
    await run('a', 0);
  });

  test('does not rest if it is none that sends requests', async () => {
    const { run } = tasks();
    markAccountActive('a');
    markAccountActive('b');
    await run('relay', 5);
    await run('relay', 0);
  });

  test('leaves the time to others, which come with or after its next task', async () => {
    const { clock, done, run } = tasks();
    markAccountActive('other');
    markAccountActive('a');
    await run('a', 5);
    const next = run('a', 0);
    await run('b', 0);
    await clock.settle();
    await run('c', 0);
    clock.advance(5);
    await next;
    expect(done).toEqual(['a', 'b', 'c', 'a']);
  });

  test('does not wait between the tasks of others if its own took little time lately', async () => {
    const { clock, done, run } = tasks();
    /** Turns of the event loop between a task of another account and one of this account. */
    const turnsUntilTask = async (account: string): Promise<number> => {
      await clock.settle();
      await run('before', 0);
      const before = done.length;
      const task = run(account, 0);
      let turns = 0;
      for (; done.length === before; turns += 1) await setImmediate();
      await task;
      return turns;
    };
    markAccountActive('little');
    markAccountActive('much');
    await run('much', 60);
    await clock.settle();
    clock.advance(100);
    expect(await turnsUntilTask('little')).toBeLessThan(3);
    expect(await turnsUntilTask('much')).toBeGreaterThan(3);
    clock.advance(1_001);
    expect(await turnsUntilTask('much')).toBeLessThan(3);
  });

  test('with little work waits between the tasks of others if many have some', async () => {
    const { clock, done, run } = tasks();
    for (let number = 0; number < 6; number += 1) markAccountActive(`little_${number}`);
    await run('before', 0);
    const all = Array.from({ length: 6 }, (_, number) => run(`little_${number}`, 1));
    for (let turn = 0; turn < 3; turn += 1) await setImmediate();
    // Two of a millisecond each, before the next turn of all accounts.
    expect(done).toHaveLength(3);
    await Promise.all(all);
    await clock.settle();
  });
});
