import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../shared/limits.ts';
import type { RateLimiter } from '../../shared/ports/rateLimiter.ts';
import { RateLimiterPostgres } from './library.ts';
import { COUNT_ONLY, createRateLimiter } from './memory.ts';
import { entriesUpTo } from '../../shared/lib/memory/entriesUpTo.ts';

/** Runs queries in PostgreSQL: `query` of the package `pg`. */
export interface Queries {
  query: (query: object) => Promise<unknown>;
}

/** A process reports its requests in portions of the limit divided by this number. */
const PORTIONS = 10;
const SECOND_MS = 1_000;
/**
 * How far ahead a count may end, in milliseconds. The clocks of two processes may differ by some
 * seconds.
 */
const LONGEST_MS = 10 * SECOND_MS;

interface KeyUse {
  /** Requests that are not reported yet. */
  untold: number;
  telling: boolean;
  /**
   * The key has used all of its requests until this time, in milliseconds of `performance.now()`.
   */
  spentUntil: number;
  /**
   * The requests that all processes together had left in the second of this process's last report.
   */
  left: number;
  leftUntil: number;
}

/**
 * Limits the requests to several processes over one database. No request waits for the database:
 * each process counts its own requests and reports them whenever a tenth of the limit has
 * accumulated. In one second, a key may therefore exceed its limit by a tenth per process, plus the
 * requests that arrive during a report. While the database can't be reached, each process limits by
 * its own count.
 */
export function createSharedRateLimiter(client: Queries): RateLimiter {
  const localLimiter = createRateLimiter();
  const sharedCounter = new RateLimiterPostgres({
    ...COUNT_ONLY,
    storeClient: client,
    storeType: 'client',
    schemaName: 'turnlog',
    tableName: 'rate_limits',
    tableCreated: true,
    keyPrefix: '',
  });
  const keys = new LRUCache<string, KeyUse>(entriesUpTo(LIMITS.cache.keys));

  function useOf(keyId: string): KeyUse {
    let use = keys.get(keyId);
    if (!use) {
      use = { untold: 0, telling: false, spentUntil: 0, left: Infinity, leftUntil: 0 };
      keys.set(keyId, use);
    }
    return use;
  }

  async function report(keyId: string, use: KeyUse, perSecond: number): Promise<void> {
    const { untold } = use;
    use.untold = 0;
    use.telling = true;
    try {
      const { consumedPoints, msBeforeNext } = await sharedCounter.penalty(keyId, untold);
      // Dated by a clock that was far ahead, the count would not start again until then.
      if (msBeforeNext > LONGEST_MS) {
        await sharedCounter.delete(keyId);
        return;
      }
      // Another machine's clock may make the second appear longer.
      use.leftUntil = performance.now() + Math.min(msBeforeNext, SECOND_MS);
      use.left = Math.max(0, perSecond - consumedPoints);
      if (use.left === 0) use.spentUntil = use.leftUntil;
    } catch {
      // The database can't be reached, which other code reports. Requests to this process are still
      // limited.
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
      const ownResult = await localLimiter.take(keyId, perSecond);
      if (!ownResult.allowed) return ownResult;
      use.untold += 1;
      if (use.untold >= perSecond / PORTIONS && !use.telling) void report(keyId, use, perSecond);
      const sharedRemaining = now < use.leftUntil ? Math.max(0, use.left - use.untold) : Infinity;
      return { ...ownResult, remaining: Math.min(ownResult.remaining, sharedRemaining) };
    },
  };
}
