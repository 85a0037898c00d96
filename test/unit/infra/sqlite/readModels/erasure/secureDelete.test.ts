import type { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { createWalCleanup } from '../../../../../../infra/sqlite/readModels/erasure/secureDelete.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** A database whose write-ahead file has readers at all times, and how long cleanups wait for them. */
function busyDatabase() {
  const waits: number[] = [];
  const database = {
    isOpen: true,
    exec: (sql: string) => void waits.push(Number(/busy_timeout = (\d+)/.exec(sql)![1])),
    prepare: (sql: string) => ({
      get: () => (sql.includes('erasures') ? { last: null } : { timeout: 0, busy: 1 }),
    }),
  } as unknown as DatabaseSync;
  return { database, waits };
}

test('a cleanup that is late waits longer for readers, whatever is erased meanwhile', () => {
  const { database, waits } = busyDatabase();
  const cleanup = createWalCleanup({ database, folder: '', version: {} as never });
  const longest = () => Math.max(...waits);
  for (let second = 0; second < 10; second += 1) {
    cleanup.erased();
    jest.advanceTimersByTime(1_000);
  }
  expect(longest()).toBe(10);
  cleanup.erased();
  jest.advanceTimersByTime(3_000);
  expect(longest()).toBe(250);
  cleanup.close();
});
