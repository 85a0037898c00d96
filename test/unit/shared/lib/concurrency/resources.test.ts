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
  pool.acquire({ account_id: 'a', bytes: 40 });
  expect(() => pool.acquire({ account_id: 'a', bytes: 40 })).toThrow(/account/);
  pool.acquire({ account_id: 'b', bytes: 30 });
  expect(() => pool.acquire({ account_id: 'c', bytes: 40 })).toThrow(/service/);
  expect(usageOf('pool')).toEqual([
    {
      count: { limit: 4, used: 2 },
      bytes: { limit: 100, used: 70 },
      rejected: { account: 1, process: 1 },
    },
  ]);
});

test('a semaphore reports waiting requests, and those that waited too long as rejected', async () => {
  const semaphore = createFairSemaphore('semaphore', ALL);
  const { signal } = new AbortController();
  const request = { account_id: 'a', bytes: 40 };
  const permit = await semaphore.acquire(request, { waitMs: 0, signal });
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
