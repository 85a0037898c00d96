import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createRateLimiter } from '../../../../infra/ratelimit/memory.ts';
import { createSharedRateLimiter } from '../../../../infra/ratelimit/shared.ts';
import type { RateLimiter } from '../../../../shared/ports/rateLimiter.ts';

/** Counts as the database does, in a second that does not end. */
function counted() {
  const counts = new Map<string, number>();
  let isAway = false;
  let calls = 0;
  return {
    goAway: () => (isAway = true),
    calls: () => calls,
    async add(keyId: string, added: number) {
      calls += 1;
      await new Promise((resolve) => setImmediate(resolve));
      if (isAway) throw new Error('away');
      const requests = (counts.get(keyId) ?? 0) + added;
      counts.set(keyId, requests);
      return { requests, msLeft: 1_000 };
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
    expect(table.calls()).toBeLessThanOrEqual(allowed / 10 + 3);
  });

  test('limit by their own counts while the database is away, and refuse nothing for that', async () => {
    const table = counted();
    table.goAway();
    const replicas = [createSharedRateLimiter(table), createSharedRateLimiter(table)];
    expect(await letIn(replicas, 1_000, 100)).toBe(200);
  });
});
