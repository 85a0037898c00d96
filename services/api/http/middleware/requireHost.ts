import type { Middleware } from 'koa';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { countHeaders } from '../requestHeaders.ts';

const HOST = /^(?:\[[\w:.%~-]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/;

/**
 * Rejects several or invalid Host headers, and HTTP/1.1 without one (RFC 9112 §3.2). Node would
 * reject some of these itself, without the envelope.
 */
export const requireHost: Middleware = (ctx, next) => {
  const { host } = ctx.req.headers;
  if (ctx.req.httpVersion === '1.1' && host === undefined)
    throw new TurnlogError('invalid_request', 'The request has no Host header.');
  if (host !== undefined && (!HOST.test(host) || countHeaders(ctx.req, 'host') !== 1))
    throw new TurnlogError('invalid_request', 'The request must have one valid Host header.');
  return next();
};
