import { createUnregisteredPool, type Permit } from '../lib/concurrency/capacity.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { ChatGrant } from './chatToken.ts';

const ALL = { permits: Infinity, bytes: Infinity };

/** Acquires a permit of the end user of a chat token. Throws `rate_limited`. */
export type AcquireUserPermit = (chat: ChatGrant) => Permit;

/**
 * Creates permits for `count` things at once of each end user with chat tokens, in this process. One
 * user can then take little from the others, whose tokens the same API key has issued. `what` names
 * the things in the error.
 */
export function createUserPermits(count: number, what: string): AcquireUserPermit {
  const pool = createUnregisteredPool(ALL, { permits: count, bytes: Infinity });
  return ({ user_hmac }) => {
    const request = { account_id: user_hmac };
    if (!pool.exhaustedScope(request)) return pool.acquire(request);
    throw new TurnlogError(
      'rate_limited',
      `An end user may have ${count} ${what}. Try again when some of them have ended.`,
      { retriable: true, retryAfterSeconds: 1 },
    );
  };
}
