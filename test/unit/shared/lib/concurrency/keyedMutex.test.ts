import { expect, test } from '@jest/globals';
import { setImmediate } from 'node:timers/promises';
import { runExclusiveFairly } from '../../../../../shared/lib/concurrency/keyedMutex.ts';

const spend = (ms: number): void => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

test('work that waited for earlier work runs turns of the event loop apart, in its order', async () => {
  const lock = { owner: {}, key: 'k', account_id: 'a' };
  const done: number[] = [];
  const all = Array.from({ length: 6 }, (_, number) =>
    runExclusiveFairly(lock, async () => {
      spend(3);
      done.push(number);
    }),
  );
  let most = 0;
  while (done.length < 6) {
    const before = done.length;
    await setImmediate();
    most = Math.max(most, done.length - before);
  }
  await Promise.all(all);
  expect(done).toEqual([0, 1, 2, 3, 4, 5]);
  // The first one, and the second one with what is left of the time of its turn.
  expect(most).toBeLessThan(3);
});

test('work without earlier work runs at once, whatever failed before', async () => {
  const lock = { owner: {}, key: 'k', account_id: 'a' };
  const failed = runExclusiveFairly(lock, () => Promise.reject(new Error('failed')));
  await expect(failed).rejects.toThrow('failed');
  await setImmediate();
  let isDone = false;
  const next = runExclusiveFairly(lock, async () => void (isDone = true));
  for (let count = 0; count < 5; count += 1) await Promise.resolve();
  expect(isDone).toBe(true);
  await next;
});
