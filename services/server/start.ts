import { createRunsInFlight } from '../../shared/commands/run/runsInFlight.ts';
import type { Config } from '../../shared/config.ts';
import type { Logger } from '../../shared/logger.ts';
import { createApp, createHealthApp } from '../api/app.ts';
import type { Availability, ProcessContext } from '../api/context.ts';
import { serve } from '../api/server.ts';
import { checkHealth } from './health.ts';
import { bootstrap } from './bootstrap.ts';
import { onceStoreAnswers } from './onceStoreAnswers.ts';
import { systemIds } from '../compose/runContext.ts';
import type { ServiceName } from './serviceNames.ts';
import { stopInOrder } from './stop.ts';
import { startClosing, startSweeper } from './sweep.ts';
import { wire } from '../compose/wire.ts';

export interface RunningService {
  /** Where it listens. */
  url: string;
  services: readonly ServiceName[];
  dataFolder: string | undefined;
  /** The API key, where this start has made or taken the first one. */
  firstKey: string | undefined;
  /** Ids of the models on offer; none where the API is not among the services. */
  models: string[];
  stop(): Promise<void>;
}

interface Start {
  services: readonly ServiceName[];
  /** Gives the start up. */
  signal: AbortSignal;
}

/**
 * Starts the services of one process. It listens at once, answers `store_unavailable` until the read models are up to date and
 * the turns that a crash left open are closed, and resolves then.
 * Errors: those of wire, and `invalid_request` when the address can't be had.
 */
export async function startService(
  config: Config,
  logger: Logger,
  { services, signal }: Start,
): Promise<RunningService> {
  const turnlog = await wire(config, logger, services);
  const { api, dataFolder } = turnlog;
  let availability: Availability = 'starting';
  const process: ProcessContext = {
    ids: systemIds,
    logger,
    availability: () => availability,
    health: () => checkHealth(turnlog, availability),
  };
  try {
    const server = await serve(api ? createApp({ ...api, ...process }) : createHealthApp(process), {
      host: config.HOST,
      port: config.PORT,
      ids: systemIds,
      logger,
    });
    const repeated = [
      startSweeper(turnlog.sweep, logger),
      ...(turnlog.closer ? [startClosing(turnlog.closer)] : []),
    ];
    const stopSweeping = () => Promise.all(repeated.map((work) => work.stop()));
    const stop = async (): Promise<void> => {
      availability = 'stopping';
      // A sweep that waits for a store which is away must not hold up the rest.
      const swept = stopSweeping();
      await stopInOrder({
        server,
        inFlight: api?.inFlight ?? createRunsInFlight(),
        logger,
        graceMs: config.SHUTDOWN_GRACE_MS,
      });
      await swept;
      await turnlog.close();
    };
    try {
      await turnlog.prepare(signal);
      const firstKey =
        api &&
        (await onceStoreAnswers(
          () => bootstrap(api, config.BOOTSTRAP_API_KEY, signal),
          logger,
          signal,
        ));
      availability = 'up';
      logger.info({ url: server.url, services, data_folder: dataFolder }, 'the service is up');
      return {
        url: server.url,
        services,
        dataFolder,
        firstKey,
        models: api?.models.list().map(({ id }) => id) ?? [],
        stop,
      };
    } catch (error) {
      await stopSweeping();
      const closed = server.close();
      server.cut();
      await closed;
      throw error;
    }
  } catch (error) {
    await turnlog.close();
    throw error;
  }
}
