import { createRequire } from 'node:module';
import type * as library from 'rate-limiter-flexible';

const load = createRequire(import.meta.url);

/** By their files: the package's entry loads all of its limiters, a good part of a start's time. */
export const RateLimiterMemory = load(
  'rate-limiter-flexible/lib/RateLimiterMemory.js',
) as typeof library.RateLimiterMemory;
export const RateLimiterPostgres = load(
  'rate-limiter-flexible/lib/RateLimiterPostgres.js',
) as typeof library.RateLimiterPostgres;
