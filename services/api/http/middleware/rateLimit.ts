import { registerResource } from '../../../../shared/lib/concurrency/resources.ts';
import type { Context } from 'koa';
import type { ChatGrant } from '../../../../shared/chatTokens/chatToken.ts';
import type { Actor } from '../../../../shared/commandHandling/context.ts';
import { createUserPermits } from '../../../../shared/chatTokens/userPermits.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { ApiContext } from '../../context.ts';
import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../../../shared/limits.ts';
import { onResponseClosed } from '../connection/clientDisconnect.ts';
import { networkOf } from '../access/loginThrottle.ts';
import { entriesUpTo } from '../../../../shared/lib/memory/entriesUpTo.ts';

const rejected = { account: 0, process: 0 };
registerResource('requests_per_second', { usage: () => ({ rejected }) });

/**
 * Counts the request against its API key, and sends the remaining quota of the second
 * (draft-ietf-httpapi-ratelimit-headers-10).
 */
export async function limitRequestRate(
  { rateLimiter, accountLimits, limits }: ApiContext,
  ctx: Context,
  { account_id, key_id }: Actor,
): Promise<void> {
  const { requests_per_second = Infinity } = await accountLimits(account_id);
  const perSecond = Math.min(requests_per_second, limits.requestsPerSecond);
  const { allowed, remaining, resetMs } = await rateLimiter.take(key_id, perSecond);
  const seconds = Math.max(1, Math.ceil(resetMs / 1_000));
  ctx.set('ratelimit-policy', `"key";q=${perSecond};w=1`);
  ctx.set('ratelimit', `"key";r=${remaining};t=${seconds}`);
  if (allowed) return;
  rejected.account += 1;
  throw new TurnlogError(
    'rate_limited',
    `The API key may send ${perSecond} requests per second. Try again in the next second.`,
    { retriable: true, retryAfterSeconds: seconds },
  );
}

const SECOND_MS = 1_000;

/** The requests of an address in the current second. */
interface RequestCount {
  until: number;
  requests: number;
}

/** Limits the requests without an API key per address, within this process. */
export function createAddressLimit(): (ctx: Context) => void {
  const counts = new LRUCache<string, RequestCount>(entriesUpTo(LIMITS.publicLog.addresses));
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

/**
 * Creates a check that limits the requests of each end user with chat tokens: per second, and those
 * that are open at once in this process. The check throws `rate_limited`.
 */
export function createChatLimit({
  rateLimiter,
}: Pick<ApiContext, 'rateLimiter'>): (ctx: Context, chat: ChatGrant) => Promise<void> {
  const { requestsPerSecond, openRequests } = LIMITS.chatTokens;
  const acquire = createUserPermits(openRequests, 'open requests');
  return async (ctx, chat) => {
    const user = `chat ${chat.user_hmac}`;
    const { allowed, resetMs } = await rateLimiter.take(user, requestsPerSecond);
    if (!allowed)
      throw new TurnlogError(
        'rate_limited',
        `An end user may send ${requestsPerSecond} requests per second. Try again in the next second.`,
        { retriable: true, retryAfterSeconds: Math.max(1, Math.ceil(resetMs / 1_000)) },
      );
    onResponseClosed(ctx.res, acquire(chat).release);
  };
}
