import { getHeapStatistics } from 'node:v8';
import { describe, expect, test } from '@jest/globals';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';

const code = (value: string) => expect.objectContaining({ code: value });
const NEVER = new AbortController().signal;

describe('the memory ledger', () => {
  test('grants all purposes together 36 % of the heap', () => {
    const ledger = createMemoryLedger();
    const purposes = Object.keys(LIMITS.heap) as (keyof typeof LIMITS.heap)[];
    const total = purposes.reduce((sum, purpose) => sum + ledger.usage(purpose).limit, 0);
    expect(total / getHeapStatistics().heap_size_limit).toBeCloseTo(0.36);
  });

  test('reports the use of each purpose, and counts refusals', async () => {
    const ledger = memoryFor('prompts', 1_000);
    const request = { account_id: 'a', purpose: 'prompts', bytes: 250 } as const;
    const first = await ledger.reserve(request, { waitMs: 0, signal: NEVER });
    ledger.reserveNow(request);
    expect(ledger.tryReserve(request)).toBeUndefined();
    expect(() => ledger.reserveNow(request)).toThrow(code('rate_limited'));
    const wait = { waitMs: 0, signal: NEVER };
    await expect(ledger.reserve(request, wait)).rejects.toThrow(code('rate_limited'));
    expect(ledger.usage('prompts')).toEqual({
      limit: 1_000,
      used: 500,
      reservations: 2,
      rejections: 2,
    });
    first.release();
    expect(ledger.usage('prompts').used).toBe(250);
    expect(ledger.usage('bodies')).toMatchObject({ used: 0, rejections: 0 });
  });

  test('a request that was given up is no refusal', async () => {
    const ledger = memoryFor('prompts', 1_000);
    const request = { account_id: 'a', purpose: 'prompts', bytes: 250 } as const;
    for (let held = 0; held < 2; held += 1) ledger.reserveNow(request);
    const stop = new AbortController();
    const waiting = ledger.reserve(request, { waitMs: 60_000, signal: stop.signal });
    expect(ledger.hasWaiters('prompts')).toBe(true);
    stop.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    expect(ledger.usage('prompts').rejections).toBe(0);
  });

  test('a request larger than half a share waits for no other account', () => {
    const ledger = memoryFor('sessionReads', 1_000);
    const reserve = (account_id: string) =>
      ledger.reserveNow({ account_id, purpose: 'sessionReads', bytes: 5_000 });
    reserve('a');
    reserve('a');
    expect(() => reserve('a')).toThrow(code('rate_limited'));
    reserve('b');
    expect(ledger.largestRequest('sessionReads')).toBe(250);
  });

  test('tells which account has more than its share, and which is in the way of those that wait', async () => {
    const ledger = memoryFor('answers', 1_000);
    const request = { account_id: 'a', purpose: 'answers', bytes: 250 } as const;
    for (let held = 0; held < 2; held += 1) ledger.reserveNow(request);
    expect([ledger.exceedsShare('answers', 'a'), ledger.hasRoomFor(request)]).toEqual([
      false,
      false,
    ]);
    const forced = ledger.forceReserve({ ...request, bytes: 1 });
    expect(['a', 'b'].map((id) => ledger.exceedsShare('answers', id))).toEqual([true, false]);
    forced.release();
    expect(ledger.exceedsShare('answers', 'a')).toBe(false);
    const stop = new AbortController();
    const waiting = ledger.reserve(request, { waitMs: 60_000, signal: stop.signal });
    expect(['a', 'b'].map((id) => ledger.isInTheWay('answers', id))).toEqual([true, false]);
    for (const account_id of ['b', 'c', 'd', 'e'])
      ledger.forceReserve({ ...request, account_id, bytes: 200 });
    const ofOther = ledger.reserve(
      { ...request, account_id: 'f' },
      { waitMs: 60_000, signal: stop.signal },
    );
    expect(['a', 'b'].map((id) => ledger.isInTheWay('answers', id))).toEqual([true, true]);
    stop.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    await expect(ofOther).rejects.toThrow('stopped');
  });

  describe('the session cache', () => {
    /** A ledger of 1,000 bytes for prompts, with a cache of 400. */
    function withCache(isFixed = false) {
      const all = { permits: Infinity, bytes: 1_000 };
      const ledger = createMemoryLedger({ prompts: { all, isFixed } });
      const evictions: number[] = [];
      const available = ledger.lendCache({
        bytes: 400,
        evictTo: (bytes) => void evictions.push(bytes),
      });
      const reserve = (account_id: string, bytes: number) =>
        ledger.reserveNow({ account_id, purpose: 'prompts', bytes });
      const fill = () =>
        ['a', 'b', 'c', 'd'].map((account_id) =>
          ledger.forceReserve({ account_id, purpose: 'prompts', bytes: 240 }),
        );
      return { evictions, available, reserve, fill };
    }

    test('gives up memory before a request is refused, and has it back afterwards', () => {
      const { fill, reserve, evictions, available } = withCache();
      const held = fill();
      const permit = reserve('e', 100);
      expect([evictions, available()]).toEqual([[340], 340]);
      permit.release();
      for (const { release } of held) release();
      expect(available()).toBe(400);
    });

    test('lends as much again after a loan was returned', () => {
      const { fill, reserve, evictions } = withCache();
      fill();
      const [first, second] = [reserve('e', 100), reserve('f', 50)];
      for (const { release } of [first, second]) release();
      reserve('g', 180);
      expect(evictions).toEqual([340, 290, 260]);
    });

    test('is not evicted for a request that does not fit', () => {
      const { fill, reserve, evictions, available } = withCache();
      fill();
      for (const _time of [1, 2]) expect(() => reserve('e', 240)).toThrow(code('overloaded'));
      expect([evictions, available()]).toEqual([[], 400]);
    });

    test('keeps its memory where an account exceeds its own share, or an operator set the limit', () => {
      const own = withCache();
      for (const _time of [1, 2]) own.reserve('a', 250);
      expect(() => own.reserve('a', 250)).toThrow(code('rate_limited'));
      expect(own.evictions).toEqual([]);
      const fixed = withCache(true);
      fixed.fill();
      expect(() => fixed.reserve('e', 100)).toThrow(code('overloaded'));
      expect(fixed.evictions).toEqual([]);
    });
  });
});
