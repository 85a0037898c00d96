import type { Middleware } from 'koa';
import type { Logger } from '../../../../shared/lib/logger.ts';

/**
 * One line a request at the level debug: the path without its query, since that is where clients
 * put what they shouldn't.
 */
export const accessLog =
  (logger: Logger): Middleware =>
  async (ctx, next) => {
    const began = performance.now();
    await next();
    logger.debug(
      {
        request_id: ctx.state['request_id'] as string,
        method: ctx.method,
        path: ctx.path,
        status: ctx.status,
        ms: Math.round(performance.now() - began),
      },
      'request',
    );
  };
