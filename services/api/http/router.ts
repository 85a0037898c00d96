import { createRequire } from 'node:module';
import type * as KoaRouter from '@koa/router';
import type { Context, Middleware } from 'koa';
import { shutdownError } from '../../../shared/runs/queueing/runsInFlight.ts';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { requireScope, unauthorizedError } from '../../../shared/accounts/authenticate.ts';
import { chatForbiddenError, requireChatAccess } from '../../../shared/chatTokens/chatAccess.ts';
import { clientDisconnectError, onResponseClosed } from './connection/clientDisconnect.ts';
import type { RouteContext } from '../context.ts';
import type { ResponsePermit } from './responses/responseMemory.ts';
import { refuseIfMatch } from './responses/etag.ts';
import { setNextLink, sendData, sendJson, wantsPretty } from './responses/envelope.ts';
import { createKeyCheck } from './access/keyRevocation.ts';
import { createAuthenticator } from './middleware/authenticated.ts';
import { admitBody, hasNoBody, readJsonBody } from './middleware/jsonBody.ts';
import { admitRequest, admitWhileConnected } from './middleware/pacing.ts';
import { createAddressLimit, createChatLimit, limitRequestRate } from './middleware/rateLimit.ts';
import { claimKeyedRequest, parseIdempotencyKey } from './idempotency.ts';
import type { Answer, Route } from './route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { runTask } from '../../../shared/lib/concurrency/eventLoopWatchdog.ts';
import { createReadReservation } from '../../../shared/eventlog/reading/readMemory.ts';
import { withWaitBudget } from '../../../shared/lib/time/waitBudget.ts';
import { waitToBegin } from '../../../shared/lib/concurrency/pacedSteps.ts';
import { yieldToEventLoop } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { bodyValidator, queryValidator } from './errors/validation.ts';

/** The package's ES module imports `node:http`, which nodeHttp.ts avoids. */
const { Router } = createRequire(import.meta.url)('@koa/router') as typeof KoaRouter;

/** Throws `store_unavailable` while the service starts or stops. */
async function requireAvailable(api: RouteContext, ctx: Context): Promise<void> {
  ctx.state['unavailable'] = true;
  if (api.availability() === 'stopping') throw shutdownError();
  const { ready, reason } = await api.health();
  if (!ready) throw storeUnavailableError(reason ?? 'The service is starting.');
  ctx.state['unavailable'] = false;
}

/**
 * Connects an operation that writes to its client: disconnects, and the headers of its response. What
 * it reads of streams is counted for the account.
 */
function clientContext(api: RouteContext, ctx: Context, account_id: string): RouteContext {
  const onClientDisconnect: RouteContext['onClientDisconnect'] = (abandon) =>
    onResponseClosed(ctx.res, () => abandon(clientDisconnectError()));
  return {
    ...api,
    onClientDisconnect,
    reserveRead: createReadReservation(api.memory, account_id, onClientDisconnect),
    onVisibilityTimeout: () => ctx.set('x-turnlog-visible', 'false'),
    waitToResume: () => waitToBegin(account_id),
    onIdempotentReplay: () => ctx.set('idempotency-replayed', 'true'),
  };
}

/** Refuses every field, so that none is silently ignored by an operation without a body. */
const checkEmptyBody = bodyValidator(Type.Object({}, { additionalProperties: false }));

/** The checks that every request passes before its handler runs. */
interface RequestPipeline {
  api: RouteContext;
  authenticate: ReturnType<typeof createAuthenticator>;
  limitChat: ReturnType<typeof createChatLimit>;
  /** Limits requests without an API key. */
  limitAddress: ReturnType<typeof createAddressLimit>;
}

const createPipeline = (api: RouteContext): RequestPipeline => ({
  api,
  authenticate: createAuthenticator(api, api.rejectLogin),
  limitChat: createChatLimit(api),
  limitAddress: createAddressLimit(),
});

/** Authenticates, limits the rate, authorizes, validates query and body, then runs the handler. */
function createHandler(pipeline: RequestPipeline, route: Route): Middleware {
  const { api, authenticate, limitChat, limitAddress } = pipeline;
  const isPublished = route.publishable === true && api.logPublic;
  const access = isPublished ? 'open' : route.access;
  const checkQuery = queryValidator(route.query ?? CommonQuery);
  const checkOptional = route.method === 'get' ? undefined : checkEmptyBody;
  const checkBody = route.body ? bodyValidator(route.body) : checkOptional;
  const mayBeEmpty = route.bodyOptional ?? !route.body;
  const ignoresIfMatch = route.method !== 'get' && !route.ifMatch;
  const waitForHandler = route.method === 'get' ? admitWhileConnected : admitRequest;
  const handle: Middleware = async (ctx) => {
    const availability = api.availability();
    if (route.access !== 'open' && availability !== 'up' && availability !== 'draining')
      await requireAvailable(api, ctx);
    const { actor, scopes } = await authenticate(ctx, access);
    const { account_id } = actor;
    ctx.state['account_id'] = account_id;
    if (isPublished) limitAddress(ctx);
    if (access !== 'open') {
      if (actor.chat) await limitChat(ctx, actor.chat);
      await limitRequestRate(api, ctx, actor);
      if (access !== 'key') requireScope(scopes, access);
    }
    if (actor.chat && !route.chatTarget) throw chatForbiddenError();
    const isAllowed = access === 'open' ? undefined : createKeyCheck(api, actor, performance.now());
    /** The key may be revoked, or its account erased, while the request waits. */
    const requireAllowed = async (): Promise<void> => {
      if (isAllowed && !(await isAllowed())) throw unauthorizedError();
    };
    if (ignoresIfMatch) refuseIfMatch(ctx);
    const query = checkQuery(ctx.query);
    const key = parseIdempotencyKey(ctx);
    const bodyPermit =
      checkBody && !(mayBeEmpty && hasNoBody(ctx))
        ? admitBody(ctx, api.memory, { account_id, mayBeEmpty })
        : undefined;
    let responsePermit: ResponsePermit | undefined;
    try {
      // A request with a body waits once that has arrived, before it is parsed.
      const waiting = bodyPermit ? undefined : waitForHandler(ctx);
      if (waiting) await waiting;
      const body = bodyPermit
        ? await readJsonBody(ctx, { permit: bodyPermit, account_id, mayBeEmpty }, checkBody!)
        : {};
      const params = ctx['params'] as Record<string, string>;
      const target = actor.chat && route.chatTarget!({ params, body });
      if (target) await requireChatAccess(api, actor, target);
      const { bufferBytes = 0, waitBytes = bufferBytes } = route;
      const acquire = async (bytes: number): Promise<void> => {
        responsePermit?.release();
        responsePermit = await api.responseMemory.acquire(account_id, bytes, ctx.res);
        await yieldToEventLoop(account_id);
      };
      const acquireBuffer = async (): Promise<void> => {
        if (!responsePermit?.resize(bufferBytes)) await acquire(bufferBytes);
        await requireAllowed();
      };
      if (waitBytes > 0) await acquire(waitBytes);
      const routeContext = route.method === 'get' ? api : clientContext(api, ctx, account_id);
      const unclaimed = { actor, params, query, body, acquireBuffer };
      await requireAllowed();
      const request =
        key === undefined
          ? unclaimed
          : {
              ...unclaimed,
              claim: await claimKeyedRequest(routeContext, route, unclaimed, { key, ctx }),
            };
      const answer = await route.handle(routeContext, request, ctx);
      if (answer) await requireAllowed();
      if (answer) await sendAnswer(ctx, answer, { account_id, media: route.media });
      const length = (answer && ctx.method !== 'HEAD' && ctx.length) || 0;
      if (length > LIMITS.http.smallAnswerBytes)
        await (responsePermit?.holdUntilSent(length) ??
          api.responseMemory.holdUntilSent(account_id, length, ctx.res));
    } finally {
      responsePermit?.release();
      bodyPermit?.release();
    }
  };
  const task = `${route.method.toUpperCase()} ${route.path}`;
  return (ctx, next) => {
    ctx.state['route'] = route;
    // A response that has begun may take as long as it has to: its reads have a limit each. No one
    // waits for the run of a client that is gone: its answer is recorded all the same.
    const isUnanswered = (): boolean => !ctx.res.headersSent && !ctx.res.destroyed;
    return runTask(task, () =>
      withWaitBudget(api.limits.storeWaitMs, isUnanswered, () => handle(ctx, next)),
    );
  };
}

interface AnswerOptions {
  account_id: string;
  /** The media type of a route whose response has no envelope. */
  media: string | undefined;
}

async function sendAnswer(
  ctx: Context,
  answer: Answer<unknown>,
  { account_id, media }: AnswerOptions,
): Promise<void> {
  if ('bytes' in answer) {
    ctx.type = answer.media ?? media ?? '';
    ctx.body = Buffer.from(answer.bytes.buffer, answer.bytes.byteOffset, answer.bytes.byteLength);
    return;
  }
  if ('data' in answer) return sendData(ctx, answer.data, answer.status);
  const { body, nextCursor } = await answer.page({ account_id, pretty: wantsPretty(ctx) });
  if (nextCursor !== undefined) setNextLink(ctx, nextCursor);
  sendJson(ctx, 200, body);
}

/** Serves the routes. Other methods of their paths get 405 and `Allow`. */
export function createRouter(api: RouteContext, routes: readonly Route[]): Middleware[] {
  const router = new Router({ strict: true, sensitive: true });
  const pipeline = createPipeline(api);
  for (const route of routes)
    router[route.method](
      route.routerPath ?? route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      createHandler(pipeline, route),
    );
  return [
    router.routes() as unknown as Middleware,
    router.allowedMethods() as unknown as Middleware,
  ];
}
