/** Safe retries of a POST: `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header). */
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
import { clientDisconnectError } from './connection/clientDisconnect.ts';
import type { Route, RouteRequest } from './route.ts';

type AnyRequest = RouteRequest<Record<string, unknown>, unknown>;

/** A quoted string (RFC 8941) or bare text; 1 to 255 printable ASCII characters either way. */
export const IDEMPOTENCY_KEY =
  '^(?:"(?:[ !#-\\[\\]-~]|\\\\["\\\\]){1,255}"|[!#-~](?:[ -~]{0,253}[!-~])?)$';
const PATTERN = new RegExp(IDEMPOTENCY_KEY);

function invalidKey(): TurnlogError {
  const message = 'must be sent once, as 1 to 255 printable ASCII characters, quoted or bare';
  return new TurnlogError('invalid_request', `The header "Idempotency-Key" ${message}.`, {
    details: { 'idempotency-key': { message, path: 'header/idempotency-key' } },
  });
}

/** The client's key; undefined without one, or where the method is not POST. */
export function parseIdempotencyKey(ctx: Context): string | undefined {
  if (ctx.method !== 'POST' || ctx.req.headers['idempotency-key'] === undefined) return undefined;
  const [text = '', ...others] = ctx.req.headersDistinct['idempotency-key']!;
  if (others.length > 0 || !PATTERN.test(text)) throw invalidKey();
  return text.startsWith('"') ? text.slice(1, -1).replaceAll(/\\(["\\])/g, '$1') : text;
}

/** The content that retries must repeat. `pretty` changes only how the response is printed. */
const idempotentContent = ({ query, body }: AnyRequest): object => {
  const { pretty: _, ...parameters } = query;
  return { query: parameters, ...(body !== undefined && { body }) };
};

/** Claims a request under the client's key. */
export async function claimKeyedRequest(
  api: RouteContext,
  route: Route,
  request: AnyRequest,
  { key, ctx }: { key: string; ctx: Context },
): Promise<Claim> {
  const { account_id } = request.actor;
  const { method, path } = ctx;
  // End users of chat tokens share an account, and may choose the same key.
  const user = request.actor.chat?.user_hmac;
  const keyed = { key: user === undefined ? key : `${user} ${key}`, account_id, method, path };
  await yieldForText(account_id, ctx.request.length ?? 0);
  return claimRequest(api, request.actor, {
    request_id: idempotentRequestId(keyed),
    operation: route.operationId,
    content_hmac: contentHmac(keyed, idempotentContent(request)),
    waiting: {
      acquire: () => api.waitingAttempts.acquire({ account_id }),
      requireClient() {
        if (ctx.res.destroyed) throw clientDisconnectError();
      },
    },
    reserve: async () => {
      const { idempotency } = route;
      const prepared = await idempotency!.prepare?.(api, request);
      return { reserved: await idempotency!.reserve(api, request, prepared), prepared };
    },
  });
}
