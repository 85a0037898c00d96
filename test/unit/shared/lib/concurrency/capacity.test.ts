import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { createPermitPool } from '../../../../../shared/lib/concurrency/capacity.ts';

const code = (value: string) => expect.objectContaining({ code: value });

/** Claims as many as there are for the account. */
function fill({ acquire: claim }: ReturnType<typeof createPermitPool>, account_id: string): number {
  for (let claimed = 0; ; claimed += 1)
    try {
      claim({ account_id, bytes: 1 });
    } catch {
      return claimed;
    }
}

describe('places', () => {
  test('one account has its share, and every further one the share of what the others leave', () => {
    const places = createPermitPool('test', { permits: Infinity, bytes: 160 });
    expect(['a', 'b', 'c', 'd'].map((account) => fill(places, account))).toEqual([80, 40, 20, 10]);
    expect(() => places.acquire({ account_id: 'a', bytes: 1 })).toThrow(code('rate_limited'));
    places.acquire({ account_id: 'newcomer', bytes: 5 });
    expect(() => places.acquire({ account_id: 'e', bytes: 3 })).toThrow(code('overloaded'));
    places.acquire({ account_id: 'e', bytes: 2 });
  });

  test('one account may have all where its share says so', () => {
    const all = { permits: 10, bytes: 10 };
    expect(fill(createPermitPool('test', all, all), 'a')).toBe(10);
  });

  test('there is room for a newcomer, whatever two others take, keep and give back', () => {
    const step = fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: -1, max: 16 }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const places = createPermitPool('test', { permits: 64, bytes: 256 });
        const held = [];
        for (const [account_id, bytes] of steps)
          if (bytes < 0) held.shift()?.release();
          else if (!places.exhaustedScope({ account_id, bytes }))
            held.push(places.forceAcquire({ account_id, bytes }));
        expect(places.exhaustedScope({ account_id: 'newcomer', bytes: 16 })).toBeUndefined();
        for (const place of held) place.release();
        expect(places.activeCount()).toBe(0);
      }),
    );
  });

  test('there is room for a newcomer beside requests of any size', () => {
    const size = fc.integer({ min: 0, max: 10_000 });
    fc.assert(
      fc.property(fc.array(size, { maxLength: 8 }), size, (others, newcomer) => {
        const places = createPermitPool('test', { permits: Infinity, bytes: 1_024 });
        for (const bytes of others)
          try {
            places.acquire({ account_id: 'a', bytes });
          } catch {
            // The account has its share.
          }
        const resized = places.forceAcquire({ account_id: 'a', bytes: 0 });
        resized.resize(10_000);
        expect(places.exhaustedScope({ account_id: 'newcomer', bytes: newcomer })).toBeUndefined();
      }),
    );
  });

  test('a place becomes larger as far as there is room, and is given back once', () => {
    const places = createPermitPool('test', { permits: 10, bytes: 100 });
    const [one, other] = [1, 2].map(() => places.acquire({ account_id: 'a', bytes: 10 }));
    expect([one!.resize(41), one!.resize(40)]).toEqual([false, true]);
    expect(places.usage().rejected).toEqual({ account: 0, process: 0 });
    one!.countRejection();
    expect(places.usage().rejected).toEqual({ account: 1, process: 0 });
    for (const place of [one!, one!, other!]) place.release();
    expect(places.activeCount()).toBe(0);
    expect(fill(places, 'a')).toBe(5);
  });
});
