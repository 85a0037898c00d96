import type { Config } from '../../shared/config.ts';
import type { Logger } from '../../shared/logger.ts';
import type { EventStore, Position } from '../../shared/ports/eventStore.ts';
import { openPublisher } from './publisher.ts';
import { startRelay, type RunningRelay } from '../relay/startRelay.ts';
import { systemClock } from './runContext.ts';

/** Relays to Kafka. Errors: `configuration_invalid` without KAFKA_BROKERS. */
export async function openRelay(
  config: Config,
  logger: Logger,
  store: EventStore,
): Promise<RunningRelay> {
  const publisher = await openPublisher(config, logger);
  return startRelay({
    log: store,
    publisher,
    startAfter: config.KAFKA_START_AFTER as Position | undefined,
    takeOverMs: config.KAFKA_TAKEOVER_MS,
    clock: systemClock,
    logger,
  });
}
