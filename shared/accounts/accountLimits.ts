import { LRUCache } from 'lru-cache';
import type { AccountLimits } from './events.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { LIMITS } from '../limits.ts';
import type { ReadModels } from '../ports/readModels.ts';
import { entriesUpTo } from '../lib/memory/entriesUpTo.ts';

/** Together with the projector's delay, changed limits take effect within a second. */
const FRESH_MS = 500;

const NONE: AccountLimits = {};

/**
 * Caches the limits of accounts for half a second. Only the first request of an account waits for
 * the read models. While the read models are unavailable, the last known limits apply; an account
 * without known limits has none. `now` returns milliseconds of a monotonic clock.
 */
export function createLimitsCache(
  { findAccount }: Pick<ReadModels, 'findAccount'>,
  now = (): number => performance.now(),
): (accountId: string) => Promise<AccountLimits> {
  const cache = new LRUCache<string, { limits: AccountLimits; askedAt: number }>(
    entriesUpTo(LIMITS.cache.accounts),
  );

  async function ask(accountId: string): Promise<AccountLimits> {
    const askedAt = now();
    try {
      const { limits = NONE } = (await findAccount(accountId)) ?? {};
      cache.set(accountId, { limits, askedAt });
      return limits;
    } catch (error) {
      if (!isTurnlogError(error, 'store_unavailable')) throw error;
      return NONE;
    }
  }

  return async (accountId) => {
    const cached = cache.get(accountId);
    if (!cached) return ask(accountId);
    if (now() - cached.askedAt >= FRESH_MS) {
      cached.askedAt = now();
      void ask(accountId);
    }
    return cached.limits;
  };
}
