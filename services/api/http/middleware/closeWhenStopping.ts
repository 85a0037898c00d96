import type { Middleware } from 'koa';
import type { Availability } from '../../context.ts';

/**
 * Closes connections after each response while the service drains or stops. Otherwise the service
 * would wait for clients to close them, and load balancers would reuse closing connections.
 */
export const closeWhenStopping =
  (availability: () => Availability): Middleware =>
  async (ctx, next) => {
    await next();
    if (['draining', 'stopping'].includes(availability())) ctx.set('connection', 'close');
  };
