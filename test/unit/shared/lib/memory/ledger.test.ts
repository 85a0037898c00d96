import { getHeapStatistics } from 'node:v8';
import { describe, expect, test } from '@jest/globals';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';

const code = (value: string) => expect.objectContaining({ code: value });
const NEVER = new AbortController().signal;

describe('the memory ledger', () => {
  test('grants all purposes together less than half of the heap', () => {
    const ledger = createMemoryLedger();
    const purposes = Object.keys(LIMITS.heap) as (keyof typeof LIMITS.heap)[];
    const total = purposes.reduce((sum, purpose) => sum + ledger.usage(purpose).limit, 0);
    expect(total).toBeLessThanOrEqual(getHeapStatistics().heap_size_limit / 2);
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
});
