import { getHeapStatistics } from 'node:v8';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { shuttingDown } from '../../shared/commands/run/runsInFlight.ts';
import { storeUnavailable } from '../../shared/errors.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ApiContext } from './context.ts';
import { linkNext, sendData } from './envelope.ts';
import { createByteBudget, type ByteBudget } from './byteBudget.ts';
import { createFailedLogins } from './failedLogins.ts';
import { authenticator } from './middleware/authenticated.ts';
import { admitBody, readJsonBody } from './middleware/jsonBody.ts';
import { takeRequest } from './middleware/rateLimit.ts';
import type { Route } from './route.ts';
import { CommonQuery } from './schemas/common.ts';
import { bodyValidator, queryValidator } from './validation.ts';

/**
 * Errors: `store_unavailable` while the service starts or stops, except for what tells about the
 * service itself.
 */
async function requireAvailable(api: ApiContext, ctx: Context): Promise<void> {
  ctx.state['unavailable'] = true;
  if (api.availability() === 'stopping') throw shuttingDown();
  const { ready, reason } = await api.health();
  if (!ready) throw storeUnavailable(reason ?? 'The service is starting.');
  ctx.state['unavailable'] = false;
}

/** An answer that is not yet shown says so; all others are, so that they need no header. */
const tellingLate = (api: ApiContext, ctx: Context): ApiContext => ({
  ...api,
  onLate: () => ctx.set('x-turnlog-visible', 'false'),
});

/** What every operation passes before its own work. */
interface Gate {
  api: ApiContext;
  authenticated: ReturnType<typeof authenticator>;
  /** What bodies may hold, from their first byte to the answer. */
  bodies: ByteBudget;
}

function createGate(api: ApiContext): Gate {
  const { bodiesOfHeap, bodiesBytesAtLeast, bodiesOfAccount } = LIMITS.http;
  const ofHeap = getHeapStatistics().heap_size_limit * bodiesOfHeap;
  const bytes = Math.max(bodiesBytesAtLeast, ofHeap);
  return {
    api,
    authenticated: authenticator(api, createFailedLogins(api.logger)),
    bodies: createByteBudget(bytes, bytes * bodiesOfAccount),
  };
}

/**
 * What every operation does, in this order: who asks, and how often, is the query right, is the
 * body right, then the operation itself.
 */
function handlerOf({ api, authenticated, bodies }: Gate, route: Route): Middleware {
  const checkQuery = queryValidator(route.query ?? CommonQuery);
  const checkBody = route.body && bodyValidator(route.body);
  return async (ctx) => {
    const availability = api.availability();
    if (route.access !== 'open' && availability !== 'up' && availability !== 'draining')
      await requireAvailable(api, ctx);
    const actor = await authenticated(ctx, route.access);
    if (route.access !== 'open') await takeRequest(api, ctx, actor);
    const query = checkQuery(ctx.query);
    const keep = checkBody && admitBody(ctx, bodies, actor.account_id);
    try {
      const body = keep && checkBody(await readJsonBody(ctx, keep));
      const answer = await route.handle(
        route.method === 'get' ? api : tellingLate(api, ctx),
        { actor, params: ctx['params'] as Record<string, string>, query, body },
        ctx,
      );
      if (answer?.next !== undefined) linkNext(ctx, answer.next);
      if (answer) sendData(ctx, answer.data);
    } finally {
      keep?.(0);
    }
  };
}

/** Serves the routes; methods that a path doesn't have are answered with 405 and `Allow`. */
export function createRouter(api: ApiContext, routes: readonly Route[]): Middleware[] {
  const router = new Router({ strict: true, sensitive: true });
  const gate = createGate(api);
  for (const route of routes)
    router[route.method](route.path.replaceAll(/\{(\w+)\}/g, ':$1'), handlerOf(gate, route));
  return [
    router.routes() as unknown as Middleware,
    router.allowedMethods() as unknown as Middleware,
  ];
}
