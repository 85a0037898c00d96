import type { Middleware } from 'koa';
import type { Ids } from '../../../../shared/ports/clock.ts';

const VALID_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/**
 * Names every request: by the client's own X-Request-Id if that is sane, else by a new one; the
 * answer carries it too.
 */
export const requestId =
  ({ uuid }: Ids): Middleware =>
  (ctx, next) => {
    const given = ctx.get('x-request-id');
    ctx.state['request_id'] = VALID_ID.test(given) ? given : uuid();
    ctx.set('x-request-id', ctx.state['request_id'] as string);
    return next();
  };
