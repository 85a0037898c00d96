import type { Context } from 'koa';
import { LRUCache } from 'lru-cache';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { networkOf } from '../access/loginThrottle.ts';

const SECOND_MS = 1_000;

/** The requests of an address in the current second. */
interface RequestCount {
  until: number;
  requests: number;
}

/** Limits the requests without an API key per address, within this process. */
export function createAddressLimit(): (ctx: Context) => void {
  const counts = new LRUCache<string, RequestCount>({ max: LIMITS.publicLog.addresses });
  return (ctx) => {
    const network = networkOf(ctx.req.socket.remoteAddress ?? '');
    const now = performance.now();
    let count = counts.get(network);
    if (!count || now >= count.until)
      counts.set(network, (count = { until: now + SECOND_MS, requests: 0 }));
    count.requests += 1;
    if (count.requests <= LIMITS.publicLog.requestsPerSecond) return;
    throw new TurnlogError(
      'rate_limited',
      `An address may send ${LIMITS.publicLog.requestsPerSecond} requests per second without an API key. Try again in the next second.`,
      { retriable: true, retryAfterSeconds: 1 },
    );
  };
}
