import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { createFairQueue } from '../../../../../shared/lib/concurrency/fairQueue.ts';
import { size } from '../../../../support/jest/size.ts';

interface Entry {
  account: string;
  number: number;
}

test('accounts take turns, each with its oldest entry', () => {
  const queue = createFairQueue<string>();
  for (const entry of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) queue.push(entry.charAt(0), entry);
  expect(queue.size()).toBe(6);
  expect(queue.peek()).toBe('a1');
  const shifted = Array.from({ length: 7 }, () => queue.shift());
  expect(shifted).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined]);
  expect([queue.size(), queue.peek()]).toEqual([0, undefined]);
});

test('an account that may not take keeps its turn', () => {
  const queue = createFairQueue<string>();
  for (const entry of ['a1', 'a2', 'b1', 'b2']) queue.push(entry.charAt(0), entry);
  const notA = (account: string): boolean => account !== 'a';
  expect([queue.shift(notA), queue.shift(), queue.shift(notA)]).toEqual(['b1', 'a1', 'b2']);
  expect([queue.shift(notA), queue.size()]).toEqual([undefined, 1]);
  expect(queue.shift()).toBe('a2');
});

const ACCOUNTS = ['a', 'b', 'c', 'd'] as const;
const operations = fc.array(fc.option(fc.constantFrom(...ACCOUNTS)), { maxLength: 200 });

test('no entry is lost, and no other account is served twice while an account waits', () => {
  fc.assert(
    fc.property(operations, (accounts) => {
      const queue = createFairQueue<Entry>();
      /** The entries of each account that wait, oldest first. */
      const waiting = new Map<string, Entry[]>(ACCOUNTS.map((account) => [account, []]));
      /** For each waiting account, the accounts served since it was served or began to wait. */
      const servedMeanwhile = new Map<string, string[]>();
      const waitingCount = () => [...waiting.values()].flat().length;

      function push(account: string, number: number): void {
        const entry = { account, number };
        const own = waiting.get(account)!;
        if (own.length === 0) servedMeanwhile.set(account, []);
        own.push(entry);
        queue.push(account, entry);
      }

      function shift(): void {
        const next = queue.peek();
        expect(queue.shift()).toBe(next);
        if (waitingCount() === 0) {
          expect(next).toBeUndefined();
          return;
        }
        const { account } = next!;
        expect(waiting.get(account)!.shift()).toBe(next);
        servedMeanwhile.delete(account);
        for (const served of servedMeanwhile.values()) {
          expect(served).not.toContain(account);
          served.push(account);
        }
        if (waiting.get(account)!.length > 0) servedMeanwhile.set(account, []);
      }

      for (const [number, account] of accounts.entries()) {
        if (account === null) shift();
        else push(account, number);
        expect(queue.size()).toBe(waitingCount());
      }
      while (waitingCount() > 0) shift();
      shift();
    }),
    { numRuns: size({ small: 300, full: 20_000 }) },
  );
});
