import { expect, test } from '@jest/globals';
import { resolvesWithin } from '../../../../../shared/lib/time/resolvesWithin.ts';

const never = new Promise<void>(() => undefined);

test('work that is done in time has settled', async () => {
  expect(await resolvesWithin(Promise.resolve('result'), 60_000)).toBe(true);
});

test('work that takes longer has not', async () => {
  expect(await resolvesWithin(never, 5)).toBe(false);
});

test('work that fails in time is that failure', async () => {
  await expect(resolvesWithin(Promise.reject(new Error('it failed')), 60_000)).rejects.toThrow(
    'it failed',
  );
});

test('work that fails too late is nobody’s unhandled rejection', async () => {
  const { promise, reject } = Promise.withResolvers<void>();
  expect(await resolvesWithin(promise, 1)).toBe(false);
  reject(new Error('too late'));
  await new Promise((resolve) => setTimeout(resolve, 10));
});

test('no timer is left behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  for (let call = 0; call < 100; call += 1) await resolvesWithin(Promise.resolve(), 60_000);
  expect(timers()).toBe(before);
});
