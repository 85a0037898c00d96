import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import { LIMITS } from '../../../shared/limits.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';

/**
 * The `Last-Event-ID` of a request; undefined without one. `parse` returns undefined for an id that
 * is not valid, which throws `invalid_request`: the header `rule`, such as `must be …`.
 */
export function readLastEventId<Id>(
  ctx: Context,
  parse: (id: string) => Id | undefined,
  rule: string,
): Id | undefined {
  const id = ctx.get('last-event-id');
  if (id === '') return undefined;
  const parsed = parse(id);
  if (parsed !== undefined) return parsed;
  throw new TurnlogError('invalid_request', `The header Last-Event-ID ${rule}.`, {
    details: { 'Last-Event-ID': { message: rule, path: 'header/Last-Event-ID' } },
  });
}

/**
 * Counts the headers with this name in lower case. Node keeps only the first of several, where a proxy
 * may use another one.
 */
export function countHeaders({ rawHeaders }: IncomingMessage, name: string): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.length === name.length && rawHeaders[at]!.toLowerCase() === name)
      count += 1;
  return count;
}

/** Ignores the content negotiation of a request whose header would take long to parse. */
export const ignoreLongAccept: Middleware = (ctx, next) => {
  const { headers } = ctx.req;
  for (const name of ['accept', 'accept-encoding'] as const)
    if ((headers[name]?.length ?? 0) > LIMITS.http.acceptChars) delete headers[name];
  return next();
};

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
