import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { shuttingDown } from '../../shared/commands/run/runsInFlight.ts';
import { storeUnavailable } from '../../shared/errors.ts';
import { LIMITS } from '../../shared/limits.ts';
import { releaseWhenSent, type Held } from './answerRoom.ts';
import type { ApiContext, RouteContext } from './context.ts';
import { linkNext, sendData, sendJson, wantsPretty } from './envelope.ts';
import { authenticated } from './middleware/authenticated.ts';
import { readJsonBody } from './middleware/jsonBody.ts';
import type { Answer, Route } from './route.ts';
import { CommonQuery } from './schemas/common.ts';
import { validator } from './validation.ts';

/**
 * Errors: `store_unavailable` while the service starts or stops, except for what tells about the
 * service itself.
 */
async function requireAvailable(api: ApiContext): Promise<void> {
  if (api.availability() === 'stopping') throw shuttingDown();
  const { ready, reason } = await api.health();
  if (!ready) throw storeUnavailable(reason ?? 'The service is starting.');
}

/** An answer that is not yet shown says so; all others are, so that they need no header. */
const tellingLate = (api: RouteContext, ctx: Context): RouteContext => ({
  ...api,
  onLate: () => ctx.set('x-turnlog-visible', 'false'),
});

/**
 * What every operation does, in this order: who asks, is the query right, is the body right, then
 * the operation itself.
 */
function handlerOf(api: RouteContext, route: Route): Middleware {
  const checkQuery = validator('query', route.query ?? CommonQuery);
  const checkBody = route.body && validator('body', route.body);
  return async (ctx) => {
    const availability = api.availability();
    if (route.access !== 'open' && availability !== 'up' && availability !== 'draining')
      await requireAvailable(api);
    const actor = await authenticated(api, ctx, route.access);
    const query = checkQuery({ ...ctx.query }) as Record<string, unknown>;
    const body = checkBody?.(await readJsonBody(ctx));
    const { account_id } = actor;
    ctx.state['account_id'] = account_id;
    const held = route.holds ? await api.answers.take(account_id, route.holds, ctx.res) : undefined;
    try {
      const answer = await route.handle(
        route.method === 'get' ? api : tellingLate(api, ctx),
        { actor, params: ctx['params'] as Record<string, string>, query, body },
        ctx,
      );
      if (answer) await send(ctx, answer);
      const length = (answer && ctx.length) ?? 0;
      if (length <= LIMITS.http.smallAnswerBytes) held?.release();
      // What has been recorded is told at any rate: there is no waiting for room any more.
      else holdUntilSent(ctx, length, held ?? api.answers.add(account_id, length));
    } catch (error) {
      held?.release();
      throw error;
    }
  };
}

async function send(ctx: Context, answer: Answer<unknown>): Promise<void> {
  if ('data' in answer) return sendData(ctx, answer.data);
  const { body, next } = await answer.page(wantsPretty(ctx));
  if (next !== undefined) linkNext(ctx, next);
  sendJson(ctx, 200, body);
}

function holdUntilSent(ctx: Context, length: number, held: Held): void {
  held.resize(length);
  releaseWhenSent(held, ctx.res);
}

/** Serves the routes; methods that a path doesn't have are answered with 405 and `Allow`. */
export function createRouter(api: RouteContext, routes: readonly Route[]): Middleware[] {
  const router = new Router({ strict: true, sensitive: true });
  for (const route of routes)
    router[route.method](route.path.replaceAll(/\{(\w+)\}/g, ':$1'), handlerOf(api, route));
  return [
    router.routes() as unknown as Middleware,
    router.allowedMethods() as unknown as Middleware,
  ];
}
