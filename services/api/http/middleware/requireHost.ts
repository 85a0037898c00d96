import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

const HOST = /^(?:\[[\w:.%~-]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/;

/** Node keeps the first of several only. */
function countHosts({ rawHeaders }: IncomingMessage): number {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.length === 4 && rawHeaders[at]!.toLowerCase() === 'host') hosts += 1;
  return hosts;
}

/**
 * RFC 9112 §3.2: a request with several Hosts or one that is none is a 400, and so is one of
 * HTTP/1.1 without any. Node would answer some of it itself, without the envelope.
 */
export const requireHost: Middleware = (ctx, next) => {
  const { host } = ctx.req.headers;
  if (ctx.req.httpVersion === '1.1' && host === undefined)
    throw new TurnlogError('invalid_request', 'The request has no Host header.');
  if (host !== undefined && (!HOST.test(host) || countHosts(ctx.req) !== 1))
    throw new TurnlogError('invalid_request', 'The request must have one valid Host header.');
  return next();
};
