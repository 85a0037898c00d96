import Koa from 'koa';
import { createReadAudit } from '../../shared/audit/foldedReads.ts';
import { LIMITS } from '../../shared/limits.ts';
import { createPermitPool } from '../../shared/lib/concurrency/capacity.ts';
import type { ApiContext, ProcessContext } from './context.ts';
import { createResponseMemory, type ResponseMemoryPool } from './http/responses/responseMemory.ts';
import { sendData } from './http/responses/envelope.ts';
import { startEventStreams } from './http/responses/sse.ts';
import { serveConsole } from './console/serveConsole.ts';
import { createLoginThrottle } from './http/access/loginThrottle.ts';
import { accessLog } from './http/middleware/accessLog.ts';
import { closeUnreadBodies } from './http/middleware/closeUnread.ts';
import { closeWhenStopping } from './http/middleware/closeWhenStopping.ts';
import { cors } from './http/middleware/cors.ts';
import { compressResponses } from './http/middleware/compressed.ts';
import { answerErrors, createPathSuggestion } from './http/middleware/errors.ts';
import { securityHeaders } from './http/middleware/headers.ts';
import { paceResponses } from './http/middleware/pacing.ts';
import { requestId } from './http/middleware/requestId.ts';
import { ignoreLongAccept, requireHost } from './http/requestHeaders.ts';
import { presentHealth } from './health/presenter.ts';
import { createRouter } from './http/router.ts';
import { apiFeatures, errorPresenter, routes } from './features.ts';
import { renderMetrics } from './metrics/routes.ts';
import { LIVE } from './health/schemas.ts';
import { disconnectSlowClients } from './http/middleware/slowClients.ts';

const suggestPath = createPathSuggestion(routes);

/** The middleware of every process, in order, without its routes. */
function createBaseApp(
  { ids, logger, availability, corsOrigins, metrics }: ProcessContext,
  responseMemory: ResponseMemoryPool,
): Koa {
  const app = new Koa();
  app.use(startEventStreams);
  app.use(requestId(ids));
  app.use(accessLog(logger, metrics));
  app.use(closeWhenStopping(availability));
  app.use(closeUnreadBodies);
  app.use(ignoreLongAccept);
  app.use(disconnectSlowClients({ logger, ...responseMemory }));
  app.use(compressResponses(responseMemory));
  app.use(answerErrors(logger, errorPresenter, suggestPath));
  // An error is written after the wait, and `cors` answers preflight requests itself.
  app.use(paceResponses);
  if (corsOrigins !== undefined) app.use(cors(corsOrigins));
  app.use(securityHeaders);
  app.use(requireHost);
  // Only clients that disconnect while their response is written cause this event.
  app.on('error', (error: Error) =>
    logger.debug({ err: error }, 'a response could not be delivered'),
  );
  return app;
}

/** The API as a Koa application. It needs no port to be tested. */
export function createApp(api: ApiContext): Koa {
  const responseMemory = createResponseMemory(api.memory);
  const app = createBaseApp(api, responseMemory);
  api.metrics.expectRequests({ routes, errorCodes: Object.keys(apiFeatures.errorResponses) });
  const openStreams = createPermitPool('event_streams', {
    permits: LIMITS.stream.open,
    bytes: Infinity,
  });
  const waitingAttempts = createPermitPool('waiting_attempts', {
    permits: LIMITS.http.waitingAttempts,
    bytes: Infinity,
  });
  const readAudit = createReadAudit(api.auditedReads);
  const context = {
    ...api,
    responseMemory,
    openStreams,
    waitingAttempts,
    readAudit,
    rejectLogin: createLoginThrottle(api.logger),
    errors: errorPresenter,
  };
  if (api.console) app.use(serveConsole(context, api.console));
  for (const middleware of createRouter(context, routes)) app.use(middleware);
  return app;
}

/** The application of a process that does not serve the API: only the health endpoints. */
export function createHealthApp(context: ProcessContext): Koa {
  const app = createBaseApp(context, createResponseMemory(context.memory));
  app.use(async (ctx) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return;
    if (ctx.path === '/health/live') sendData(ctx, LIVE);
    if (ctx.path === '/health/ready') sendData(ctx, presentHealth(await context.health()));
  });
  return app;
}

/** The application of the port for metrics. */
export function createMetricsApp(context: ProcessContext): Koa {
  const app = createBaseApp(context, createResponseMemory(context.memory));
  app.use(async (ctx) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return;
    if (ctx.path !== '/metrics') return;
    const { media, bytes } = await renderMetrics(context, ctx.accepts.bind(ctx));
    ctx.type = media;
    ctx.body = bytes;
  });
  return app;
}
