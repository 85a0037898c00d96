import type { Context } from 'koa';
import type { Actor } from '../../../../shared/commandHandling/context.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { ApiContext } from '../../context.ts';

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
  throw new TurnlogError(
    'rate_limited',
    `The API key may send ${perSecond} requests per second. Try again in the next second.`,
    { retriable: true, retryAfterSeconds: seconds },
  );
}
