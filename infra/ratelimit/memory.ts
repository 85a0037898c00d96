import { RateLimiterMemory } from './library.ts';
import type { RateLimiter } from '../../shared/ports/rateLimiter.ts';

/** The library only counts, because the limit differs by key. */
export const COUNT_ONLY = { points: Number.MAX_SAFE_INTEGER, duration: 1 };

/** Limits the requests to this process. */
export function createRateLimiter(): RateLimiter {
  const counter = new RateLimiterMemory(COUNT_ONLY);
  return {
    async take(keyId, perSecond) {
      const { consumedPoints, msBeforeNext } = await counter.consume(keyId);
      return {
        allowed: consumedPoints <= perSecond,
        remaining: Math.max(0, perSecond - consumedPoints),
        resetMs: msBeforeNext,
      };
    },
  };
}
