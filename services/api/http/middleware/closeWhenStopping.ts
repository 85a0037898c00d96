import type { Middleware } from 'koa';
import type { Availability } from '../../context.ts';

/**
 * Ends the connection with every answer while the service drains or stops: it would wait for
 * clients to let go otherwise, and a load balancer would meet a connection that is being closed.
 */
export const closeWhenStopping =
  (availability: () => Availability): Middleware =>
  async (ctx, next) => {
    await next();
    if (['draining', 'stopping'].includes(availability())) ctx.set('connection', 'close');
  };
