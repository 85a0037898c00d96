import { expect, test } from '@jest/globals';
import { createPermitPool } from '../../../../../shared/lib/concurrency/capacity.ts';
import { createFairSemaphore } from '../../../../../shared/lib/concurrency/fairSemaphore.ts';
import { registeredResources } from '../../../../../shared/lib/concurrency/resources.ts';

const ALL = { permits: 4, bytes: 100 };

const usageOf = (name: string) =>
  registeredResources()
    .filter(([registered]) => registered === name)
    .map(([, resource]) => resource.usage());

test('a permit pool reports its limits, their use, and rejections by whose limit was reached', () => {
  const pool = createPermitPool('pool', ALL);
  pool.acquire({ account_id: 'a', bytes: 25 });
  pool.acquire({ account_id: 'a', bytes: 20 });
  expect(() => pool.acquire({ account_id: 'a', bytes: 10 })).toThrow(/account/);
  pool.forceAcquire({ account_id: 'b', bytes: 50 });
  expect(() => pool.acquire({ account_id: 'c', bytes: 10 })).toThrow(/service/);
  expect(usageOf('pool')).toEqual([
    {
      count: { limit: 4, used: 3 },
      bytes: { limit: 100, used: 95 },
      rejected: { account: 1, process: 1 },
    },
  ]);
});

test('a semaphore reports waiting requests, and those that waited too long as rejected', async () => {
  const semaphore = createFairSemaphore('semaphore', ALL);
  const { signal } = new AbortController();
  const request = { account_id: 'a', bytes: 20 };
  const permit = semaphore.forceAcquire({ account_id: 'a', bytes: 40 });
  const rejected = semaphore.acquire(request, { waitMs: 0, signal });
  expect(usageOf('semaphore')).toMatchObject([{ waiting: 1, bytes: { used: 40 } }]);
  await expect(rejected).rejects.toMatchObject({ code: 'rate_limited' });
  permit.release();
  expect(usageOf('semaphore')).toEqual([
    {
      count: { limit: 4, used: 0 },
      bytes: { limit: 100, used: 0 },
      waiting: 0,
      rejected: { account: 1, process: 0 },
    },
  ]);
});
