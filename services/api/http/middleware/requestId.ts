import type { Middleware } from 'koa';
import type { Ids } from '../../../../shared/ports/clock.ts';

const VALID_ID = /^[A-Za-z0-9._:-]{1,128}$/;
/** A UUID of random bits (version 4) or of the time and random bits (version 7). */
const RANDOM_UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/**
 * Gives every request an id, the client's valid X-Request-Id or a new one, and returns it. Events
 * outlive erasures, so they record a client's id only if it is a random UUID, and a new one
 * otherwise: other ids may hold text.
 */
export const requestId =
  ({ uuid }: Ids): Middleware =>
  (ctx, next) => {
    const clientId = ctx.get('x-request-id');
    const recorded = RANDOM_UUID.test(clientId) ? clientId : uuid();
    ctx.state['request_id'] = VALID_ID.test(clientId) ? clientId : recorded;
    ctx.state['recorded_request_id'] = recorded;
    ctx.set('x-request-id', ctx.state['request_id'] as string);
    return next();
  };
