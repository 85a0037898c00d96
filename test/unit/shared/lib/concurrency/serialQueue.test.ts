import { expect, test } from '@jest/globals';
import { createSerialQueue } from '../../../../../shared/lib/concurrency/serialQueue.ts';

test('work begins when all earlier work has ended, also after a failure', async () => {
  const queue = createSerialQueue();
  const steps: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = queue.run(async () => {
    await gate.promise;
    steps.push('first');
    throw new Error('it fails');
  });
  const second = queue.run(() => steps.push('second'));
  let isIdle = false;
  const idle = queue.idle().then(() => (isIdle = true));
  await new Promise(setImmediate);
  expect([steps, isIdle]).toEqual([[], false]);
  gate.resolve();
  await expect(first).rejects.toThrow('it fails');
  expect(await second).toBe(2);
  await idle;
  expect(steps).toEqual(['first', 'second']);
});
