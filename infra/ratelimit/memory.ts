import { createRequire } from 'node:module';
import type * as library from 'rate-limiter-flexible';
import type { RateLimiter } from '../../shared/ports/rateLimiter.ts';

/**
 * Loaded by file: the package's entry loads all of its limiters, which takes a considerable part of
 * the startup time.
 */
const RateLimiterMemory = createRequire(import.meta.url)(
  'rate-limiter-flexible/lib/RateLimiterMemory.js',
) as typeof library.RateLimiterMemory;
/** The library only counts, because the limit differs by key. */
const COUNT_ONLY = { points: Number.MAX_SAFE_INTEGER, duration: 1 };

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
