import Koa from 'koa';
import type { ApiContext } from './context.ts';
import { accessLog } from './middleware/accessLog.ts';
import { closeWhenStopping } from './middleware/closeWhenStopping.ts';
import { answerErrors } from './middleware/errors.ts';
import { requestId } from './middleware/requestId.ts';
import { requireHost } from './middleware/requireHost.ts';
import { createRouter } from './router.ts';
import { routes } from './routes/index.ts';

/** The API as a Koa application: its middleware in order. It needs no port to be tested. */
export function createApp(api: ApiContext): Koa {
  const app = new Koa();
  app.use(requestId(api.ids));
  app.use(accessLog(api.logger));
  app.use(closeWhenStopping(api.availability));
  app.use(answerErrors(api.logger));
  app.use(requireHost);
  for (const middleware of createRouter(api, routes)) app.use(middleware);
  // Only a client that went away while its answer was written ends here.
  app.on('error', (error: Error) => api.logger.debug({ err: error }, 'an answer could not be delivered'));
  return app;
}
