import type { Middleware } from 'koa';
import type { Availability } from '../context.ts';

/**
 * Ends the connection with every answer while the service stops, which would wait for clients to
 * let go otherwise.
 */
export const closeWhenStopping =
  (availability: () => Availability): Middleware =>
  async (ctx, next) => {
    await next();
    if (availability() === 'stopping') ctx.set('connection', 'close');
  };
