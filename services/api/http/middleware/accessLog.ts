import type { Middleware } from 'koa';
import type { Logger } from '../../../../shared/lib/logger.ts';

/** Logs each request at level debug, without its query, where clients may put secrets. */
export const accessLog =
  (logger: Logger): Middleware =>
  async (ctx, next) => {
    const startedAt = performance.now();
    const { request_id, recorded_request_id } = ctx.state as Record<string, string>;
    await next();
    logger.debug(
      {
        request_id,
        // Events hold this id where the client's own could be text.
        ...(recorded_request_id !== request_id && { recorded_request_id }),
        method: ctx.method,
        path: ctx.path,
        status: ctx.status,
        ms: Math.round(performance.now() - startedAt),
      },
      'request',
    );
  };
