import type { Context } from 'koa';
import type { ChatGrant } from '../../../../shared/chatTokens/chatToken.ts';
import { createUnregisteredPool } from '../../../../shared/lib/concurrency/capacity.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { ApiContext } from '../../context.ts';
import { onResponseClosed } from '../connection/clientDisconnect.ts';

const ALL = { permits: Infinity, bytes: Infinity };

const limitedError = (message: string, retryAfterSeconds: number): TurnlogError =>
  new TurnlogError('rate_limited', message, { retriable: true, retryAfterSeconds });

/**
 * Creates a check that limits the requests of each end user with chat tokens: per second, and those
 * that are open at once in this process. A visitor of a page can then take little from the others,
 * whose tokens the same API key has issued. The check throws `rate_limited`.
 */
export function createChatLimit({
  rateLimiter,
}: Pick<ApiContext, 'rateLimiter'>): (ctx: Context, chat: ChatGrant) => Promise<void> {
  const { requestsPerSecond, openRequests } = LIMITS.chatTokens;
  const open = createUnregisteredPool(ALL, { permits: openRequests, bytes: Infinity });
  return async (ctx, { user_hmac }) => {
    const { allowed, resetMs } = await rateLimiter.take(`chat ${user_hmac}`, requestsPerSecond);
    if (!allowed)
      throw limitedError(
        `An end user may send ${requestsPerSecond} requests per second. Try again in the next second.`,
        Math.max(1, Math.ceil(resetMs / 1_000)),
      );
    const request = { account_id: user_hmac, bytes: 0 };
    if (open.exhaustedScope(request))
      throw limitedError(
        `An end user may have ${openRequests} open requests. Try again when some of them have ended.`,
        1,
      );
    onResponseClosed(ctx.res, open.acquire(request).release);
  };
}
