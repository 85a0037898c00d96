import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { createRateLimiter } from '../../../../infra/ratelimit/memory.ts';
import { createSharedRateLimiter } from '../../../../infra/ratelimit/shared.ts';
import type { RateLimiter } from '../../../../shared/ports/rateLimiter.ts';

/** What the library asks of the table: adds up, and answers later. */
function counted() {
  const rows = new Map<string, { points: number; expire: number }>();
  let away = false;
  let asked = 0;
  return {
    rows,
    goAway: () => (away = true),
    asked: () => asked,
    query: async (query: object) => {
      asked += 1;
      const { text, values } = query as { text: string; values: [string, number, number, number] };
      const [key, points, expire, now] = values;
      await new Promise((resolve) => setImmediate(resolve));
      if (away) throw new Error('away');
      if (text.startsWith('DELETE')) return { rows: [], rowCount: Number(rows.delete(key)) };
      const known = rows.get(key);
      const row =
        known && known.expire > now
          ? { points: known.points + points, expire: known.expire }
          : { points, expire };
      rows.set(key, row);
      return { rows: [row], rowCount: 1 };
    },
  };
}

/** How many of so many requests are let in, one after the other, with pauses for answers. */
async function letIn(limiters: RateLimiter[], requests: number, perSecond: number) {
  let allowed = 0;
  for (let request = 0; request < requests; request += 1) {
    const taken = await limiters[request % limiters.length]!.take('key_1', perSecond);
    if (taken.allowed) allowed += 1;
    if (request % 5 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return allowed;
}

let realNow: () => number;
beforeAll(() => {
  // The whole test happens in one second, however slow the machine is.
  realNow = Date.now;
  const fixed = Date.now();
  Date.now = () => fixed;
});
afterAll(() => {
  Date.now = realNow;
});

describe.each([
  ['of one process', createRateLimiter],
  ['of several', () => createSharedRateLimiter(counted())],
])('the rate limiter %s', (_which, create) => {
  test('lets in as many requests as a key has in a second, and says what is left', async () => {
    const limiter = create();
    const first = await limiter.take('key_1', 3);
    expect(first).toEqual({ allowed: true, remaining: 2, resetMs: expect.any(Number) });
    expect(first.resetMs).toBeGreaterThan(0);
    expect(first.resetMs).toBeLessThanOrEqual(1_000);
    await limiter.take('key_1', 3);
    expect(await limiter.take('key_1', 3)).toMatchObject({ allowed: true, remaining: 0 });
    expect(await limiter.take('key_1', 3)).toMatchObject({ allowed: false, remaining: 0 });
    expect(await limiter.take('key_2', 3)).toMatchObject({ allowed: true, remaining: 2 });
  });
});

describe('replicas', () => {
  test('let in a tenth more for each of them at the most, together', async () => {
    const table = counted();
    const replicas = [1, 2, 3].map(() => createSharedRateLimiter(table));
    const allowed = await letIn(replicas, 1_000, 100);
    expect(allowed).toBeGreaterThanOrEqual(100);
    expect(allowed).toBeLessThanOrEqual(100 + 3 * 10 + 5);
    expect(table.asked()).toBeLessThanOrEqual(allowed / 10 + 3);
  });

  test('share their counts, although their clocks differ by seconds', async () => {
    const table = counted();
    const [behind, ahead] = [createSharedRateLimiter(table), createSharedRateLimiter(table)];
    const fixed = Date.now();
    const now = jest.spyOn(Date, 'now').mockReturnValue(fixed + 3_000);
    expect(await letIn([ahead], 200, 100)).toBe(100);
    now.mockRestore();
    expect(await letIn([behind], 200, 100)).toBeLessThanOrEqual(10 + 5);
  });

  test('discard a count that a clock far ahead has dated', async () => {
    const table = counted();
    const [inOneYear, perSecond] = [Date.now() + 365 * 24 * 3_600_000, 10];
    table.rows.set('key_1', { points: 1_000, expire: inOneYear });
    const limiter = createSharedRateLimiter(table);
    expect(await letIn([limiter], 20, perSecond)).toBe(perSecond);
    expect(table.rows.get('key_1')?.expire).toBe(Date.now() + 1_000);
  });

  test('limit by their own counts while the database is away, and refuse nothing for that', async () => {
    const table = counted();
    table.goAway();
    const replicas = [createSharedRateLimiter(table), createSharedRateLimiter(table)];
    expect(await letIn(replicas, 1_000, 100)).toBe(200);
  });
});
