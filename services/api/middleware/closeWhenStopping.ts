import type { Middleware } from 'koa';
import type { Availability } from '../context.ts';

/** The answers of a service that is stopping end their connections, or stopping would wait for the clients to let go of them. */
export const closeWhenStopping =
  (availability: () => Availability): Middleware =>
  async (ctx, next) => {
    await next();
    if (availability() === 'stopping') ctx.set('connection', 'close');
  };
