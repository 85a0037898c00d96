import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import { LIMITS } from '../../../../shared/limits.ts';
import type { RetryAdvice, TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';

export const wantsPretty = (ctx: Context): boolean => ctx.query['pretty'] === 'true';

/** The JSON text of a response, indented for `?pretty=true`. */
export const jsonText = (value: unknown, pretty: boolean): string =>
  pretty ? `${JSON.stringify(value, null, 2)}\n` : JSON.stringify(value);

export const successEnvelope = (data: unknown, status = 200) => ({ success: true, data, status });

/** 408 and 429, and failures of the service itself. */
const mayPass = (status: number): boolean => status === 408 || status === 429 || status >= 500;

const retryOf = ({ retry, retriable }: TurnlogError, status: number): RetryAdvice =>
  retry ?? (retriable || mayPass(status) ? 'same_key' : 'never');

/** Only `message` and `details` of a TurnlogError are meant for clients, not cause and stack. */
export const failureEnvelope = (error: TurnlogError, requestId: string, status: number) => ({
  success: false,
  error: error.message,
  code: error.code,
  ...(error.details === undefined ? {} : { details: error.details }),
  status,
  retry: retryOf(error, status),
  ...error.turn,
  request_id: requestId,
});

/** The path of a turn. */
export const turnPath = ({ session_id, turn }: { session_id: string; turn: number }): string =>
  `/v1/sessions/${session_id}/turns/${turn}`;

/** Sends serialized JSON. */
export function sendJson(ctx: Context, status: number, body: string | Buffer | Readable): void {
  ctx.status = status;
  ctx.type = JSON_TYPE;
  ctx.body = body;
}

/** A large text is sent as bytes, so that it is in memory once. */
export function sendData(ctx: Context, data: unknown, status = 200): void {
  const text = jsonText(successEnvelope(data, status), wantsPretty(ctx));
  sendJson(ctx, status, text.length > LIMITS.http.smallAnswerBytes ? Buffer.from(text) : text);
}

/** Links the next page, as a relative reference (RFC 8288). */
export function setNextLink(ctx: Context, cursor: string): void {
  const query = new URLSearchParams(ctx.querystring);
  query.set('after', cursor);
  ctx.set('link', `<${ctx.path}?${query.toString()}>; rel="next"`);
}
