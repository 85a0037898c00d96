import { closeLeftOpen } from '../shared/commands/run/closeLeftOpen.ts';
import type { Config } from '../shared/config.ts';
import type { Logger } from '../shared/logger.ts';
import { createApp } from './api/app.ts';
import type { ApiContext, Availability } from './api/context.ts';
import { serve } from './api/server.ts';
import { checkHealth } from './health.ts';
import { bootstrap, onceStoreAnswers, recoverOpenTurns, untilCaughtUp } from './lifecycle.ts';
import { stopInOrder } from './stop.ts';
import { wire } from './wire.ts';

/** How often turns are looked after that had to be left open while the store was away. */
const SWEEP_MS = 2_000;

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
 * Starts the service. It listens at once, answers `store_unavailable` until the read models are up to date and the
 * turns that a crash left open are closed, and resolves then.
 * Errors: those of wire, and `invalid_request` when the address can't be had.
 */
export async function startService(config: Config, logger: Logger, signal: AbortSignal): Promise<RunningService> {
  const turnlog = await wire(config, logger);
  const { context, projector, dataFolder } = turnlog;
  let availability: Availability = 'starting';
  const api: ApiContext = { ...context, availability: () => availability, health: () => checkHealth(turnlog, availability) };
  try {
    const server = await serve(createApp(api), { host: config.HOST, port: config.PORT, ids: context.ids, logger });
    let sweeping: Promise<void> | undefined;
    const sweep = (): void => {
      sweeping ??= closeLeftOpen(context, signal).finally(() => {
        sweeping = undefined;
      });
    };
    const sweeper = setInterval(sweep, SWEEP_MS).unref();
    const stop = async (): Promise<void> => {
      availability = 'stopping';
      clearInterval(sweeper);
      await sweeping;
      await stopInOrder({ server, inFlight: context.inFlight, logger, graceMs: config.SHUTDOWN_GRACE_MS });
      await turnlog.close();
    };
    try {
      await untilCaughtUp(projector.progress, signal);
      await onceStoreAnswers(() => recoverOpenTurns(context), logger, signal);
      const firstKey = await onceStoreAnswers(() => bootstrap(context, config.BOOTSTRAP_API_KEY), logger, signal);
      availability = 'up';
      logger.info({ url: server.url, data_folder: dataFolder }, 'the service is up');
      return { url: server.url, dataFolder, firstKey, models: context.models.list().map(({ id }) => id), stop };
    } catch (error) {
      clearInterval(sweeper);
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
