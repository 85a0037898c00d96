import type { Middleware } from 'koa';
import type { Logger } from '../../../../shared/lib/logger.ts';

/** Logs each request at level debug, without its query, where clients may put secrets. */
export const accessLog =
  (logger: Logger): Middleware =>
  async (ctx, next) => {
    const startedAt = performance.now();
    await next();
    logger.debug(
      {
        request_id: ctx.state['request_id'] as string,
        method: ctx.method,
        path: ctx.path,
        status: ctx.status,
        ms: Math.round(performance.now() - startedAt),
      },
      'request',
    );
  };
