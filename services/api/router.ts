import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { shuttingDown } from '../../shared/commands/run/runsInFlight.ts';
import { storeUnavailable } from '../../shared/errors.ts';
import type { ApiContext } from './context.ts';
import { linkNext, sendData } from './envelope.ts';
import { authenticated } from './middleware/authenticated.ts';
import { readJsonBody } from './middleware/jsonBody.ts';
import type { Route } from './route.ts';
import { CommonQuery } from './schemas/common.ts';
import { bodyValidator, queryValidator } from './validation.ts';

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
const tellingLate = (api: ApiContext, ctx: Context): ApiContext => ({
  ...api,
  onLate: () => ctx.set('x-turnlog-visible', 'false'),
});

/**
 * What every operation does, in this order: who asks, is the query right, is the body right, then
 * the operation itself.
 */
function handlerOf(api: ApiContext, route: Route): Middleware {
  const checkQuery = queryValidator(route.query ?? CommonQuery);
  const checkBody = route.body && bodyValidator(route.body);
  return async (ctx) => {
    const availability = api.availability();
    if (route.access !== 'open' && availability !== 'up' && availability !== 'draining')
      await requireAvailable(api);
    const actor = await authenticated(api, ctx, route.access);
    const query = checkQuery(ctx.query);
    const body = checkBody?.(await readJsonBody(ctx));
    const answer = await route.handle(
      route.method === 'get' ? api : tellingLate(api, ctx),
      { actor, params: ctx['params'] as Record<string, string>, query, body },
      ctx,
    );
    if (answer?.next !== undefined) linkNext(ctx, answer.next);
    if (answer) sendData(ctx, answer.data);
  };
}

/** Serves the routes; methods that a path doesn't have are answered with 405 and `Allow`. */
export function createRouter(api: ApiContext, routes: readonly Route[]): Middleware[] {
  const router = new Router({ strict: true, sensitive: true });
  for (const route of routes)
    router[route.method](route.path.replaceAll(/\{(\w+)\}/g, ':$1'), handlerOf(api, route));
  return [
    router.routes() as unknown as Middleware,
    router.allowedMethods() as unknown as Middleware,
  ];
}
