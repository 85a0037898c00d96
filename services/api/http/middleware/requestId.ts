import type { Middleware } from 'koa';
import type { Ids } from '../../../../shared/ports/clock.ts';

const VALID_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Gives every request an id, the client's valid X-Request-Id or a new one, and returns it. */
export const requestId =
  ({ uuid }: Ids): Middleware =>
  (ctx, next) => {
    const clientId = ctx.get('x-request-id');
    ctx.state['request_id'] = VALID_ID.test(clientId) ? clientId : uuid();
    ctx.set('x-request-id', ctx.state['request_id'] as string);
    return next();
  };
