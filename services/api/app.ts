import Koa from 'koa';
import { LIMITS } from '../../shared/limits.ts';
import { createPlaces } from '../../shared/places.ts';
import type { ApiContext, ProcessContext } from './context.ts';
import { createAnswerRoom, type AnswerRoom } from './answerRoom.ts';
import { sendData } from './envelope.ts';
import { accessLog } from './middleware/accessLog.ts';
import { closeUnread } from './middleware/closeUnread.ts';
import { closeWhenStopping } from './middleware/closeWhenStopping.ts';
import { cors } from './middleware/cors.ts';
import { compressed } from './middleware/compressed.ts';
import { answerErrors } from './middleware/errors.ts';
import { protectiveHeaders } from './middleware/headers.ts';
import { requestId } from './middleware/requestId.ts';
import { requireHost } from './middleware/requireHost.ts';
import { presentHealth } from './presenters/health.ts';
import { createRouter } from './router.ts';
import { routes } from './routes/index.ts';
import { LIVE } from './schemas/health.ts';
import { cutSlowReaders } from './slowReaders.ts';

/** What every process answers requests with, in order: all but the answers themselves. */
function createBareApp(
  { ids, logger, availability, corsOrigins }: ProcessContext,
  answers: AnswerRoom,
): Koa {
  const app = new Koa();
  app.use(requestId(ids));
  app.use(accessLog(logger));
  app.use(closeWhenStopping(availability));
  app.use(closeUnread);
  if (corsOrigins !== undefined) app.use(cors(corsOrigins));
  app.use(cutSlowReaders({ logger, isShort: answers.isShort }));
  app.use(compressed(answers));
  app.use(answerErrors(logger));
  app.use(protectiveHeaders);
  app.use(requireHost);
  // Only a client that went away while its answer was written ends here.
  app.on('error', (error: Error) =>
    logger.debug({ err: error }, 'an answer could not be delivered'),
  );
  return app;
}

/** The API as a Koa application. It needs no port to be tested. */
export function createApp(api: ApiContext): Koa {
  const answers = createAnswerRoom();
  const app = createBareApp(api, answers);
  const streams = createPlaces({ places: LIMITS.stream.open, bytes: Infinity });
  for (const middleware of createRouter({ ...api, answers, streams }, routes)) app.use(middleware);
  return app;
}

/**
 * What a process answers that does not serve the API: whether it lives, and whether it can do its
 * work.
 */
export function createHealthApp(context: ProcessContext): Koa {
  const app = createBareApp(context, createAnswerRoom());
  app.use(async (ctx) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return;
    if (ctx.path === '/health/live') sendData(ctx, LIVE);
    if (ctx.path === '/health/ready') sendData(ctx, presentHealth(await context.health()));
  });
  return app;
}
