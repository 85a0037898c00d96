import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { shutdownError } from '../../../shared/runs/queueing/runsInFlight.ts';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import { heapFor } from '../../../shared/lib/heapBudget.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  createPermitPool,
  type Permit,
  type PermitPool,
} from '../../../shared/lib/concurrency/capacity.ts';
import { requireScope } from '../../../shared/accounts/authenticate.ts';
import { clientLeft, whenClosed } from './connection/clientDisconnect.ts';
import type { RouteContext } from '../context.ts';
import { linkNext, sendData, sendJson, wantsPretty } from './responses/envelope.ts';
import { createFailedLogins } from './access/loginThrottle.ts';
import { authenticator } from './middleware/authenticated.ts';
import { createAddressLimit } from './middleware/addressLimit.ts';
import { admitBody, hasNoBody, readJsonBody } from './middleware/jsonBody.ts';
import { takeRequest } from './middleware/rateLimit.ts';
import { claimFor, idempotencyKeyOf } from './idempotency.ts';
import type { Answer, Route } from './route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { yieldToEventLoop } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { bodyValidator, queryValidator } from './errors/validation.ts';

/**
 * Errors: `store_unavailable` while the service starts or stops, except for what tells about the
 * service itself.
 */
async function requireAvailable(api: RouteContext, ctx: Context): Promise<void> {
  ctx.state['unavailable'] = true;
  if (api.availability() === 'stopping') throw shutdownError();
  const { ready, reason } = await api.health();
  if (!ready) throw storeUnavailableError(reason ?? 'The service is starting.');
  ctx.state['unavailable'] = false;
}

/**
 * What an operation that writes is told of its client, and tells it. An answer that is not yet shown
 * says so; all others are, so that they need no header.
 */
const forClient = (api: RouteContext, ctx: Context): RouteContext => ({
  ...api,
  onClientDisconnect: (giveUp) => whenClosed(ctx.res, () => giveUp(clientLeft())),
  onVisibilityTimeout: () => ctx.set('x-turnlog-visible', 'false'),
  onIdempotentReplay: () => ctx.set('idempotency-replayed', 'true'),
});

/** What every operation passes before its own work. */
interface Gate {
  api: RouteContext;
  authenticated: ReturnType<typeof authenticator>;
  /** Counts the requests of who needs no key. */
  takeOfAddress: ReturnType<typeof createAddressLimit>;
  /** What bodies may hold, from their first byte to the answer. */
  bodies: PermitPool;
}

const createGate = (api: RouteContext): Gate => ({
  api,
  authenticated: authenticator(api, createFailedLogins(api.logger)),
  takeOfAddress: createAddressLimit(),
  bodies: createPermitPool({ permits: Infinity, bytes: heapFor('bodies') }),
});

/**
 * What every operation does, in this order: who asks, how often, and may they, is the query right,
 * is the body right, then the operation itself.
 */
function handlerOf(gate: Gate, route: Route): Middleware {
  const { api, authenticated, takeOfAddress, bodies } = gate;
  const isPublished = route.publishable === true && api.logPublic;
  const access = isPublished ? 'open' : route.access;
  const checkQuery = queryValidator(route.query ?? CommonQuery);
  const checkBody = route.body && bodyValidator(route.body);
  return async (ctx) => {
    const availability = api.availability();
    if (route.access !== 'open' && availability !== 'up' && availability !== 'draining')
      await requireAvailable(api, ctx);
    const { actor, scopes } = await authenticated(ctx, access);
    if (isPublished) takeOfAddress(ctx);
    if (access !== 'open') {
      await takeRequest(api, ctx, actor);
      if (access !== 'key') requireScope(scopes, access);
    }
    const query = checkQuery(ctx.query);
    const key = idempotencyKeyOf(ctx);
    const { account_id } = actor;
    ctx.state['account_id'] = account_id;
    const isLeftOut = route.bodyOptional === true && hasNoBody(ctx);
    const place = checkBody && !isLeftOut ? admitBody(ctx, bodies, account_id) : undefined;
    let held: Permit | undefined;
    try {
      const body = place ? checkBody?.(await readJsonBody(ctx, place, account_id)) : {};
      if (route.holds) {
        held = await api.answers.take(account_id, route.holds, ctx.res);
        await yieldToEventLoop(account_id);
      }
      const own = route.method === 'get' ? api : forClient(api, ctx);
      const asked = { actor, params: ctx['params'] as Record<string, string>, query, body };
      const request =
        key === undefined
          ? asked
          : { ...asked, claim: await claimFor(own, route, asked, { key, ctx }) };
      const answer = await route.handle(own, request, ctx);
      if (answer) await send(ctx, answer, { account_id, media: route.media });
      const length = (answer && ctx.length) ?? 0;
      // What has been recorded is told at any rate: there is no waiting for room any more.
      if (length > LIMITS.http.smallAnswerBytes)
        api.answers.holdUntilSent(account_id, length, ctx.res);
    } finally {
      held?.release();
      place?.release();
    }
  };
}

interface Sending {
  account_id: string;
  /** Of a route whose answer has no envelope. */
  media: string | undefined;
}

async function send(
  ctx: Context,
  answer: Answer<unknown>,
  { account_id, media }: Sending,
): Promise<void> {
  if ('bytes' in answer) {
    ctx.type = answer.media ?? media ?? '';
    ctx.body = Buffer.from(answer.bytes.buffer, answer.bytes.byteOffset, answer.bytes.byteLength);
    return;
  }
  if ('data' in answer) return sendData(ctx, answer.data, answer.status);
  const { body, next } = await answer.page({ account_id, pretty: wantsPretty(ctx) });
  if (next !== undefined) linkNext(ctx, next);
  sendJson(ctx, 200, body);
}

/** Serves the routes; methods that a path doesn't have are answered with 405 and `Allow`. */
export function createRouter(api: RouteContext, routes: readonly Route[]): Middleware[] {
  const router = new Router({ strict: true, sensitive: true });
  const gate = createGate(api);
  for (const route of routes)
    router[route.method](
      route.served ?? route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      handlerOf(gate, route),
    );
  return [
    router.routes() as unknown as Middleware,
    router.allowedMethods() as unknown as Middleware,
  ];
}
