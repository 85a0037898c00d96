import { expect, test } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { runPaced, waitToBegin } from '../../../../../shared/lib/concurrency/pacedSteps.ts';

/** Work of some milliseconds, in steps that each note whose they are. */
const work = (account: string, name: string, steps: number, log: string[]): Promise<void> =>
  new Promise((resolve) => {
    let left = steps;
    runPaced(account, () => {
      const until = performance.now() + 1;
      while (performance.now() < until);
      log.push(name);
      left -= 1;
      if (left === 0) resolve();
      return left > 0;
    });
  });

test('the first step runs at once', async () => {
  const log: string[] = [];
  const done = work('a', 'a', 1, log);
  expect(log).toEqual(['a']);
  await done;
});

test('accounts take turns, however much work one of them has', async () => {
  const log: string[] = [];
  const flood = Array.from({ length: 20 }, (_, at) => work('a', `a${at}`, 5, log));
  await work('b', 'b', 5, log);
  const before = log.filter((name) => name !== 'b').length;
  expect(before).toBeLessThan(20);
  await Promise.all(flood);
  expect(log).toHaveLength(105);
});

test('the tasks of one account take turns', async () => {
  const log: string[] = [];
  await Promise.all([work('a', '1', 10, log), work('a', '2', 10, log)]);
  expect(log.lastIndexOf('1')).toBeGreaterThan(log.indexOf('2'));
});

test('the event loop turns meanwhile', async () => {
  const log: string[] = [];
  let turns = 0;
  const count = setInterval(() => (turns += 1), 1);
  await work('a', 'a', 60, log);
  clearInterval(count);
  expect(turns).toBeGreaterThan(5);
});

test('what a step has resolved runs before the next step', async () => {
  const log: string[] = [];
  await new Promise<void>((resolve) => {
    let left = 3;
    runPaced('a', () => {
      log.push('step');
      void Promise.resolve()
        .then(() => undefined)
        .then(() => log.push('resolved'));
      left -= 1;
      if (left === 0) setImmediate(resolve);
      return left > 0;
    });
  });
  expect(log).toEqual(['step', 'resolved', 'step', 'resolved', 'step', 'resolved']);
});

const spend = (ms: number): void => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

/** A request that takes a millisecond once it has begun. */
async function request(account: string, name: string, log: string[]): Promise<void> {
  const waiting = waitToBegin(account);
  if (waiting) await waiting;
  log.push(name);
  spend(1);
}

test('a request begins at once while the event loop has time, and later after it had none', async () => {
  await nextTurn();
  expect(waitToBegin('a')).toBeUndefined();
  spend(3);
  const waiting = waitToBegin('a');
  expect(waiting).toBeInstanceOf(Promise);
  await waiting;
  await nextTurn();
  expect(waitToBegin('a')).toBeUndefined();
});

test('of many that continue at once, only as many begin as there is time for what they do next', async () => {
  await nextTurn();
  let begun = 0;
  const begin = async (): Promise<void> => {
    await waitToBegin('a');
    await Promise.resolve();
    begun += 1;
    spend(0.1);
  };
  const all = Promise.all(Array.from({ length: 200 }, begin));
  await nextTurn();
  expect(begun).toBeLessThan(100);
  await all;
});

test('the requests of one account begin in order, and those of another one in between', async () => {
  const log: string[] = [];
  const names = Array.from({ length: 30 }, (_, at) => `a${at}`);
  const flood = names.map((name) => request('a', name, log));
  await request('b', 'b', log);
  expect(log.length).toBeLessThan(10);
  await Promise.all(flood);
  expect(log.filter((name) => name !== 'b')).toEqual(names);
});

test('requests that wait do not stop the tasks of their account', async () => {
  const log: string[] = [];
  const flood = Array.from({ length: 30 }, (_, at) => request('a', `a${at}`, log));
  await work('a', 'step', 5, log);
  expect(log.length).toBeLessThan(20);
  await Promise.all(flood);
});
