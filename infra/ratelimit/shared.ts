import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../shared/limits.ts';
import type { RateLimiter } from '../../shared/ports/rateLimiter.ts';
import { RateLimiterPostgres } from './library.ts';
import { COUNT_ONLY, createRateLimiter } from './memory.ts';

/** What queries PostgreSQL: `query` of the package `pg`. */
export interface Queries {
  query: (query: object) => Promise<unknown>;
}

/** Requests are told to the others in portions of the limit. */
const PORTIONS = 10;
const SECOND_MS = 1_000;

interface KeyUse {
  /** Requests that the others were not told of yet. */
  untold: number;
  telling: boolean;
  /** Until then the key has had all its requests, in milliseconds of `performance.now()`. */
  spentUntil: number;
  /** What all processes together left of a second when this one asked last. */
  left: number;
  leftUntil: number;
}

/**
 * Limits the requests that come to several processes over one database. No request waits for it:
 * each process counts its own, and tells the others whenever a tenth of the limit has come together.
 * So in one second a key may have a tenth of its limit more for each process, and what comes while
 * one asks. While the database is away, each process limits by its own count.
 */
export function createSharedRateLimiter(client: Queries): RateLimiter {
  const own = createRateLimiter();
  const all = new RateLimiterPostgres({
    ...COUNT_ONLY,
    storeClient: client,
    storeType: 'client',
    schemaName: 'turnlog',
    tableName: 'rate_limits',
    tableCreated: true,
    keyPrefix: '',
  });
  const keys = new LRUCache<string, KeyUse>({ max: LIMITS.cache.keys });

  function useOf(keyId: string): KeyUse {
    let use = keys.get(keyId);
    if (!use) {
      use = { untold: 0, telling: false, spentUntil: 0, left: Infinity, leftUntil: 0 };
      keys.set(keyId, use);
    }
    return use;
  }

  async function tell(keyId: string, use: KeyUse, perSecond: number): Promise<void> {
    const { untold } = use;
    use.untold = 0;
    use.telling = true;
    try {
      const { consumedPoints, msBeforeNext } = await all.penalty(keyId, untold);
      // Another machine's clock may say that the second is longer.
      use.leftUntil = performance.now() + Math.min(msBeforeNext, SECOND_MS);
      use.left = Math.max(0, perSecond - consumedPoints);
      if (use.left === 0) use.spentUntil = use.leftUntil;
    } catch {
      // The database is away, which others report; own requests are limited all the same.
    } finally {
      use.telling = false;
    }
  }

  return {
    async take(keyId, perSecond) {
      const use = useOf(keyId);
      const now = performance.now();
      if (now < use.spentUntil)
        return { allowed: false, remaining: 0, resetMs: use.spentUntil - now };
      const taken = await own.take(keyId, perSecond);
      if (!taken.allowed) return taken;
      use.untold += 1;
      if (use.untold >= perSecond / PORTIONS && !use.telling) void tell(keyId, use, perSecond);
      const left = now < use.leftUntil ? Math.max(0, use.left - use.untold) : Infinity;
      return { ...taken, remaining: Math.min(taken.remaining, left) };
    },
  };
}
