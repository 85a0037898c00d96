import type { Config } from '../shared/config.ts';
import type { Logger } from '../shared/logger.ts';
import { createApp } from './api/app.ts';
import type { ApiContext, Availability } from './api/context.ts';
import { serve } from './api/server.ts';
import { checkHealth } from './health.ts';
import { bootstrap, recoverOpenTurns, untilCaughtUp } from './lifecycle.ts';
import { stopInOrder } from './stop.ts';
import { wireEmbedded } from './wire.ts';

export interface RunningService {
  /** Where it listens. */
  url: string;
  dataFolder: string;
  /** The API key, where this start has made or taken the first one. */
  firstKey: string | undefined;
  /** Ids of the models on offer. */
  models: string[];
  stop(): Promise<void>;
}

/**
 * Starts the embedded service. It listens at once, answers `store_unavailable` until the read models are up to date and the
 * turns that a crash left open are closed, and resolves then.
 * Errors: those of wireEmbedded, and `invalid_request` when the address can't be had.
 */
export async function startService(config: Config, logger: Logger, signal: AbortSignal): Promise<RunningService> {
  const turnlog = await wireEmbedded(config, logger);
  const { context, projector, dataFolder } = turnlog;
  let availability: Availability = 'starting';
  const api: ApiContext = { ...context, availability: () => availability, health: () => checkHealth(context, availability, projector.caughtUp()) };
  try {
    const server = await serve(createApp(api), { host: config.HOST, port: config.PORT, ids: context.ids });
    const stop = async (): Promise<void> => {
      availability = 'stopping';
      await stopInOrder({ server, inFlight: context.inFlight, logger, graceMs: config.SHUTDOWN_GRACE_MS });
      await turnlog.close();
    };
    try {
      await untilCaughtUp(projector.progress, signal);
      await recoverOpenTurns(context);
      const firstKey = await bootstrap(context, config.BOOTSTRAP_API_KEY);
      availability = 'up';
      logger.info({ url: server.url, data_folder: dataFolder }, 'the service is up');
      return { url: server.url, dataFolder, firstKey, models: context.models.list().map(({ id }) => id), stop };
    } catch (error) {
      server.cut();
      throw error;
    }
  } catch (error) {
    await turnlog.close();
    throw error;
  }
}
