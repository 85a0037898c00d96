import type { Middleware } from 'koa';
import { TurnlogError } from '../../../shared/errors.ts';

/**
 * RFC 9112 §3.2: an HTTP/1.1 request without Host is a 400. Node would answer it itself, without
 * the envelope.
 */
export const requireHost: Middleware = (ctx, next) => {
  if (ctx.req.httpVersion === '1.1' && ctx.req.headers.host === undefined)
    throw new TurnlogError('invalid_request', 'The request has no Host header.');
  return next();
};
