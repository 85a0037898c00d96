import type Koa from 'koa';
import { typeIds } from '../../../infra/ids/typeIds.ts';
import { startServer, type ApiServer } from '../../../services/api/http/connection/server.ts';
import { createLogger } from '../../../shared/lib/logger.ts';

/** Serves an application on a free port, without the service behind it. */
export const startApiServer = (app: Koa, maxConnections = 10): Promise<ApiServer> =>
  startServer(app, {
    host: '127.0.0.1',
    port: 0,
    portOption: 'PORT',
    maxConnections,
    ids: typeIds,
    logger: createLogger('silent'),
  });
