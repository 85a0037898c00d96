import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../shared/limits.ts';
import type { RateLimiter, SharedCounts } from '../../shared/ports/rateLimiter.ts';
import { createRateLimiter } from './memory.ts';
import { entriesUpTo } from '../../shared/lib/memory/entriesUpTo.ts';

/** A process reports its requests in portions of the limit divided by this number. */
const PORTIONS = 10;

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
export function createSharedRateLimiter(counts: SharedCounts): RateLimiter {
  const localLimiter = createRateLimiter();
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
      const { requests, msLeft } = await counts.add(keyId, untold);
      use.leftUntil = performance.now() + msLeft;
      use.left = Math.max(0, perSecond - requests);
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
