import type { Context } from 'koa';
import { LRUCache } from 'lru-cache';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { networkOf } from '../access/loginThrottle.ts';

const SECOND_MS = 1_000;

/** What an address has taken of a second. */
interface RequestCount {
  until: number;
  requests: number;
}

/**
 * Counts the requests that come without a key against their address, in this process alone.
 * Errors: `rate_limited`.
 */
export function createAddressLimit(): (ctx: Context) => void {
  const known = new LRUCache<string, RequestCount>({ max: LIMITS.publicLog.addresses });
  return (ctx) => {
    const network = networkOf(ctx.req.socket.remoteAddress ?? '');
    const now = performance.now();
    let taken = known.get(network);
    if (!taken || now >= taken.until)
      known.set(network, (taken = { until: now + SECOND_MS, requests: 0 }));
    taken.requests += 1;
    if (taken.requests <= LIMITS.publicLog.requestsPerSecond) return;
    throw new TurnlogError(
      'rate_limited',
      `An address may send ${LIMITS.publicLog.requestsPerSecond} requests per second without an API key. Try again in the next second.`,
      { retriable: true, retryAfterSeconds: 1 },
    );
  };
}
