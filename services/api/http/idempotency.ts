/** `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): a POST that may be sent again. */
import type { Context } from 'koa';
import {
  claimRequest,
  type Claim,
  contentHmac,
  idempotentRequestId,
} from '../../../shared/requests/idempotency.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { yieldForText } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import type { RouteContext } from '../context.ts';
import type { Route, RouteRequest } from './route.ts';

type AnyRequest = RouteRequest<Record<string, unknown>, unknown>;

/** A string of RFC 8941, or the text as it is; 1 to 255 printable ASCII characters either way. */
export const IDEMPOTENCY_KEY =
  '^(?:"(?:[ !#-\\[\\]-~]|\\\\["\\\\]){1,255}"|[!#-~](?:[ -~]{0,253}[!-~])?)$';
const PATTERN = new RegExp(IDEMPOTENCY_KEY);

function invalidKey(): TurnlogError {
  const message =
    'must be sent once, and be 1 to 255 printable ASCII characters, in quotes or as they are';
  return new TurnlogError('invalid_request', `The header "Idempotency-Key" ${message}.`, {
    details: { 'idempotency-key': { message, path: 'header/idempotency-key' } },
  });
}

/** The client's key; undefined where it sent none, or the method is not POST. Errors: `invalid_request`. */
export function parseIdempotencyKey(ctx: Context): string | undefined {
  if (ctx.method !== 'POST') return undefined;
  const sent = ctx.req.headersDistinct['idempotency-key'];
  if (sent === undefined) return undefined;
  const [text = '', ...more] = sent;
  if (more.length > 0 || !PATTERN.test(text)) throw invalidKey();
  return text.startsWith('"') ? text.slice(1, -1).replaceAll(/\\(["\\])/g, '$1') : text;
}

/** How it is printed makes no other request. */
const idempotentContent = ({ query, body }: AnyRequest): object => {
  const { pretty: _, ...asked } = query;
  return { query: asked, ...(body !== undefined && { body }) };
};

/**
 * Claims a request under the client's key. Errors: Rejection (`request_differs`), those of the
 * route's `reserve`, `stream_damaged`, `release_too_old`, `store_unavailable`.
 */
export async function claimKeyedRequest(
  api: RouteContext,
  route: Route,
  request: AnyRequest,
  { key, ctx }: { key: string; ctx: Context },
): Promise<Claim> {
  const { account_id } = request.actor;
  const { method, path } = ctx;
  const keyed = { key, account_id, method, path };
  await yieldForText(account_id, ctx.request.length ?? 0);
  return claimRequest(api, request.actor, {
    request_id: idempotentRequestId(keyed),
    operation: route.operationId,
    body_hmac: contentHmac(keyed, idempotentContent(request)),
    reserve: async () => {
      const { idempotency } = route;
      const prepared = await idempotency!.prepare?.(api, request);
      return { reserved: await idempotency!.reserve(api, request, prepared), prepared };
    },
  });
}
