import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createLogEndEstimate } from '../../../../../shared/eventlog/identity/endOfLog.ts';
import { positionOf } from '../../../../support/builders/history.ts';

test('what the store said last is the answer while it is slow, and it is asked one question at a time', async () => {
  let asked = 0;
  let answer = Promise.resolve(positionOf(1));
  const endOfLog = createLogEndEstimate({
    head() {
      asked += 1;
      return answer;
    },
  });
  expect(await endOfLog.latest()).toBe(positionOf(1));
  const slow = Promise.withResolvers<ReturnType<typeof positionOf>>();
  answer = slow.promise;
  const began = performance.now();
  expect(await Promise.all([endOfLog.latest(), endOfLog.latest()])).toEqual([
    positionOf(1),
    positionOf(1),
  ]);
  expect(performance.now() - began).toBeLessThan(5_000);
  expect(asked).toBe(2);
  slow.resolve(positionOf(2));
  await sleep(0);
  expect(await endOfLog.latest()).toBe(positionOf(2));
});

test('nothing is known of a store that has never answered, and a failure is not passed on', async () => {
  expect(
    await createLogEndEstimate({ head: () => Promise.reject(new Error('away')) }).latest(),
  ).toBeUndefined();
  expect(
    await createLogEndEstimate({ head: () => new Promise(() => undefined) }).latest(),
  ).toBeUndefined();
});
