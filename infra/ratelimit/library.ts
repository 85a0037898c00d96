import { createRequire } from 'node:module';
import type * as library from 'rate-limiter-flexible';

const load = createRequire(import.meta.url);

/**
 * Loaded by file: the package's entry loads all of its limiters, which takes a considerable part of
 * the startup time.
 */
export const RateLimiterMemory = load(
  'rate-limiter-flexible/lib/RateLimiterMemory.js',
) as typeof library.RateLimiterMemory;
export const RateLimiterPostgres = load(
  'rate-limiter-flexible/lib/RateLimiterPostgres.js',
) as typeof library.RateLimiterPostgres;
