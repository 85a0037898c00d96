import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

const HOST = /^(?:\[[\w:.%~-]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/;

/** Counts raw headers, because Node keeps only the first Host. */
function countHosts({ rawHeaders }: IncomingMessage): number {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.length === 4 && rawHeaders[at]!.toLowerCase() === 'host') hosts += 1;
  return hosts;
}

/**
 * Rejects several or invalid Host headers, and HTTP/1.1 without one (RFC 9112 §3.2). Node would
 * reject some of these itself, without the envelope.
 */
export const requireHost: Middleware = (ctx, next) => {
  const { host } = ctx.req.headers;
  if (ctx.req.httpVersion === '1.1' && host === undefined)
    throw new TurnlogError('invalid_request', 'The request has no Host header.');
  if (host !== undefined && (!HOST.test(host) || countHosts(ctx.req) !== 1))
    throw new TurnlogError('invalid_request', 'The request must have one valid Host header.');
  return next();
};
