import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';

export const wantsPretty = (ctx: Context): boolean => ctx.query['pretty'] === 'true';

/** JSON text of any answer, for people if `?pretty=true` asks for it. */
export const jsonText = (value: unknown, pretty: boolean): string =>
  pretty ? `${JSON.stringify(value, null, 2)}\n` : JSON.stringify(value);

export const successEnvelope = (data: unknown, status = 200) => ({ success: true, data, status });

/**
 * `message` and `details` of a TurnlogError are made for clients; its cause and stack stay here.
 */
export const failureEnvelope = (error: TurnlogError, requestId: string, status: number) => ({
  success: false,
  error: error.message,
  code: error.code,
  ...(error.details === undefined ? {} : { details: error.details }),
  status,
  request_id: requestId,
});

/** Answers with JSON that is written already. */
export function sendJson(ctx: Context, status: number, body: string | Buffer | Readable): void {
  ctx.status = status;
  ctx.type = JSON_TYPE;
  ctx.body = body;
}

export const sendData = (ctx: Context, data: unknown, status = 200): void =>
  sendJson(ctx, status, jsonText(successEnvelope(data, status), wantsPretty(ctx)));

/** Tells the client where the next page is, as a relative reference (RFC 8288). */
export function setNextLink(ctx: Context, cursor: string): void {
  const query = new URLSearchParams(ctx.querystring);
  query.set('after', cursor);
  ctx.set('link', `<${ctx.path}?${query.toString()}>; rel="next"`);
}
