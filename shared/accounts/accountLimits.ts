import { LRUCache } from 'lru-cache';
import type { AccountLimits } from './events.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { LIMITS } from '../limits.ts';
import type { ReadModels } from '../ports/readModels.ts';

/** With the projector's delay less than a second: so long changed limits are not obeyed. */
const FRESH_MS = 500;

const NONE: AccountLimits = {};

/**
 * What was set for accounts, remembered for half a second. Nobody but the first who asks waits for
 * the read models; while they are away, what was known last holds, or else no limit of the account's
 * own. `now` in milliseconds of a monotonic clock.
 */
export function createLimitsCache(
  { findAccount }: Pick<ReadModels, 'findAccount'>,
  now = (): number => performance.now(),
): (accountId: string) => Promise<AccountLimits> {
  const known = new LRUCache<string, { limits: AccountLimits; askedAt: number }>({
    max: LIMITS.cache.accounts,
  });

  async function ask(accountId: string): Promise<AccountLimits> {
    const askedAt = now();
    try {
      const { limits = NONE } = (await findAccount(accountId)) ?? {};
      known.set(accountId, { limits, askedAt });
      return limits;
    } catch (error) {
      if (!isTurnlogError(error, 'store_unavailable')) throw error;
      return NONE;
    }
  }

  return async (accountId) => {
    const found = known.get(accountId);
    if (!found) return ask(accountId);
    if (now() - found.askedAt >= FRESH_MS) {
      found.askedAt = now();
      void ask(accountId);
    }
    return found.limits;
  };
}
