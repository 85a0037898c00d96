import type { Middleware } from 'koa';
import type { Metrics, ObservedRequest } from '../../../../shared/health/metrics.ts';
import type { Logger } from '../../../../shared/lib/logger.ts';

/**
 * Logs each request at level debug, without its query, where clients may put secrets, and counts it
 * in the metrics.
 */
export const accessLog =
  (logger: Logger, metrics: Pick<Metrics, 'observeRequest'>): Middleware =>
  async (ctx, next) => {
    const startedAt = performance.now();
    const { request_id, recorded_request_id } = ctx.state as Record<string, string>;
    await next();
    const ms = performance.now() - startedAt;
    const { route, code } = ctx.state as Pick<ObservedRequest, 'route' | 'code'>;
    metrics.observeRequest({ route, status: ctx.status, code, seconds: ms / 1_000 });
    logger.debug(
      {
        request_id,
        // Events hold this id where the client's own could be text.
        ...(recorded_request_id !== request_id && { recorded_request_id }),
        method: ctx.method,
        path: ctx.path,
        status: ctx.status,
        ms: Math.round(ms),
      },
      'request',
    );
  };
