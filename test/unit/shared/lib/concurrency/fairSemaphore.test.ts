import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { createFairSemaphore } from '../../../../../shared/lib/concurrency/fairSemaphore.ts';
import type { Permit, Capacity } from '../../../../../shared/lib/concurrency/capacity.ts';
import { size } from '../../../../support/jest/size.ts';

const PATIENT_MS = 60_000;
const NEVER = new AbortController().signal;

/** Lets everything happen that does not wait for a timer. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

interface Entry {
  account_id: string;
  bytes: number;
  place?: Permit;
  over?: true;
  abort: () => void;
}

/** A line, and what has come of everybody who entered it. */
function watchedLine(all: Capacity, share = all) {
  const line = createFairSemaphore('test', all, share);
  const entries: Entry[] = [];
  const admitted: Entry[] = [];

  function enter(account_id: string, bytes = 1): Entry {
    const stop = new AbortController();
    const counted = Math.min(bytes, line.largestRequest());
    const entry: Entry = {
      account_id,
      bytes: counted,
      abort: () => stop.abort(new Error('stopped')),
    };
    entries.push(entry);
    const entered = line.acquire(
      { account_id, bytes },
      { waitMs: PATIENT_MS, signal: stop.signal },
    );
    const come = async (): Promise<void> => {
      try {
        entry.place = await entered;
        admitted.push(entry);
      } catch {
        entry.over = true;
      }
    };
    void come();
    return entry;
  }

  const inside = (): Entry[] => entries.filter(({ place, over }) => place && !over);
  function leave(entry: Entry): void {
    entry.over = true;
    entry.place!.release();
  }
  return { line, entries, admitted, enter, inside, leave };
}

const ALL: Capacity = { permits: 5, bytes: 20 };
const SHARE: Capacity = { permits: 3, bytes: 10 };

const account = fc.constantFrom('a', 'b', 'c', 'd');
const step = fc.oneof(
  fc.record({ do: fc.constant('enter' as const), account, bytes: fc.integer({ min: 0, max: 12 }) }),
  fc.record({ do: fc.constant('leave' as const), which: fc.nat() }),
  fc.record({ do: fc.constant('abort' as const), which: fc.nat() }),
  fc.record({ do: fc.constant('resize' as const), which: fc.nat(), bytes: fc.nat(12) }),
);

const sum = (entries: Entry[]): number => entries.reduce((bytes, entry) => bytes + entry.bytes, 0);

function expectWithin(entries: Entry[], { permits: places, bytes }: Capacity): void {
  expect(entries.length).toBeLessThanOrEqual(places);
  expect(sum(entries)).toBeLessThanOrEqual(bytes);
}

describe('the fair line', () => {
  test('is never over a bound, loses nobody, and keeps nothing of those who left', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { line, entries, enter, inside, leave } = watchedLine(ALL, SHARE);
        for (const taken of steps) {
          const waiting = entries.filter(({ place, over }) => !place && !over);
          const pick = <Item>(items: Item[], which: number): Item | undefined =>
            items[which % items.length];
          if (taken.do === 'enter') enter(taken.account, taken.bytes);
          else if (taken.do === 'abort') pick(waiting, taken.which)?.abort();
          else {
            const entry = pick(inside(), taken.which);
            if (entry && taken.do === 'leave') leave(entry);
            else if (entry && taken.do === 'resize' && entry.place!.resize(taken.bytes))
              entry.bytes = taken.bytes;
          }
          await settled();
          expectWithin(inside(), ALL);
          for (const id of ['a', 'b', 'c', 'd'])
            expectWithin(
              inside().filter(({ account_id }) => account_id === id),
              SHARE,
            );
          expect(line.activeCount()).toBe(inside().length);
        }
        while (inside().length > 0) {
          for (const entry of inside()) leave(entry);
          await settled();
        }
        expect(entries.filter(({ over }) => !over)).toEqual([]);
        expect(line.activeCount()).toBe(0);
      }),
      { numRuns: size({ small: 200, full: 5_000 }) },
    );
  });

  test('lets an account in again only after every other one that waits', async () => {
    const arrivals = fc.array(account, { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(arrivals, async (accounts) => {
        const { entries, admitted, enter, inside, leave } = watchedLine({ permits: 1, bytes: 1 });
        enter('first');
        for (const id of accounts) enter(id);
        await settled();
        while (inside().length > 0) {
          const waitedBefore = new Set(
            entries.filter(({ place }) => !place).map(({ account_id }) => account_id),
          );
          const last = admitted.at(-1)!.account_id;
          leave(inside()[0]!);
          await settled();
          const next = admitted.at(-1)!.account_id;
          if (waitedBefore.size > 1) expect(next).not.toBe(last);
        }
        const turns = admitted.slice(1).map(({ account_id }) => account_id);
        for (const [index, id] of turns.entries()) {
          const again = turns.indexOf(id, index + 1);
          const between = new Set(turns.slice(index + 1, again));
          const waiting = new Set(turns.slice(index + 1));
          waiting.delete(id);
          if (again !== -1) expect(between).toEqual(waiting);
        }
        expect(admitted).toHaveLength(entries.length);
      }),
      { numRuns: size({ small: 100, full: 2_000 }) },
    );
  });

  test('lets each account in by age', async () => {
    const { admitted, enter, inside, leave } = watchedLine({ permits: 1, bytes: 100 });
    const entered = [3, 2, 1, 4].map((bytes) => enter('a', bytes));
    await settled();
    for (; inside().length > 0; await settled()) leave(inside()[0]!);
    expect(admitted).toEqual(entered);
  });

  test('keeps what becomes free for a large one whose turn it is, and lets small ones go on in the rest', async () => {
    const { enter, inside, leave } = watchedLine({ permits: 100, bytes: 10 });
    for (let index = 0; index < 10; index += 1) enter('small');
    await settled();
    const large = enter('large', 5);
    for (let index = 0; index < 20; index += 1) enter('small');
    await settled();
    for (let left = 0; left < 5; left += 1) {
      expect(large.place).toBeUndefined();
      leave(inside()[0]!);
      await settled();
    }
    expect(large.place).toBeDefined();
    expect(inside()).toHaveLength(6);
    leave(inside().find(({ account_id }) => account_id === 'small')!);
    await settled();
    expect(inside()).toHaveLength(6);
  });

  test('lets others in at once when one returns a part of its bytes', async () => {
    const { enter } = watchedLine({ permits: 100, bytes: 10 });
    const [large] = [enter('a', 5), enter('b', 5)];
    const next = enter('c', 1);
    await settled();
    expect(next.place).toBeUndefined();
    large.place!.resize(2);
    await settled();
    expect(next.place).toBeDefined();
  });

  test('lets others in at once when a large one gives up', async () => {
    const { enter } = watchedLine({ permits: 100, bytes: 10 });
    for (let held = 0; held < 2; held += 1) enter('a', 4);
    const large = enter('b', 5);
    const small = enter('c', 1);
    await settled();
    expect([large.place, small.place]).toEqual([undefined, undefined]);
    large.abort();
    await settled();
    expect(small.place).toBeDefined();
  });

  test('says whose room is full to who has waited for too long', async () => {
    const line = createFairSemaphore('test', { permits: 2, bytes: 10 });
    const enter = (account_id: string) =>
      line.acquire({ account_id, bytes: 1 }, { waitMs: 0, signal: NEVER });
    await enter('a');
    await expect(enter('a')).rejects.toMatchObject({ code: 'rate_limited' });
    await enter('b');
    await expect(enter('c')).rejects.toMatchObject({ code: 'overloaded' });
  });
});
