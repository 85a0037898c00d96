import type { Config } from '../../../shared/lib/config/config.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import {
  withOpenTexts,
  type ProtectedStore,
} from '../../../shared/eventlog/encryption/protectedStore.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { startRelay } from '../../followers/relay/start.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import { openProtectedStore, type Opening, type OpenedParts } from '../opening.ts';
import { checkPositionFormat } from '../eventStore.ts';
import { locateStorage, type StorageLocation } from '../logLocation.ts';
import { openPublisher } from './publisher.ts';
import { systemClock } from '../system.ts';

const BEGINNING = 'beginning';

/** Where KAFKA_START_AFTER says to begin, and whether it says anything. */
const startPosition = ({
  KAFKA_START_AFTER: after,
}: Config): { startAfter: Position | undefined; startIsStated: boolean } => ({
  startAfter: after === BEGINNING ? undefined : (after as Position | undefined),
  startIsStated: after !== undefined,
});

/** Errors: `configuration_invalid` for a KAFKA_START_AFTER that can be no position of the log. */
async function checkStartPosition(config: Config): Promise<void> {
  const { startAfter } = startPosition(config);
  if (startAfter === undefined) return;
  try {
    await checkPositionFormat(locateStorage(config).log, startAfter);
  } catch (error) {
    throw new TurnlogError(
      'configuration_invalid',
      `KAFKA_START_AFTER names no position. ${(error as Error).message}`,
      { cause: error },
    );
  }
}

/**
 * The relay to Kafka; no part where it is not among the services. Errors: `configuration_invalid`
 * without KAFKA_BROKERS, and for a start that is no position.
 */
export async function openRelay(opening: Opening, store: ProtectedStore): Promise<ProcessPart[]> {
  const { config, logger, services, opened } = opening;
  if (!services.includes('relay')) return [];
  await checkStartPosition(config);
  const options = {
    log: withOpenTexts(store, store.keys),
    publisher: await openPublisher(config, logger),
    ...startPosition(config),
    takeOverMs: config.KAFKA_TAKEOVER_MS,
    clock: systemClock,
    logger,
  };
  const relay = opened.adopt(startRelay(options), ({ close }) => close());
  return [{ health: async () => ({ relay: await relay.health() }) }];
}

/**
 * A relay on its own: it needs the log, the keys of its texts and Kafka, and no read models. Errors: `store_unavailable`,
 * `configuration_invalid`.
 */
export async function openRelayAlone(
  opening: Opening,
  place: StorageLocation,
): Promise<OpenedParts> {
  const { store, keysPart } = await openProtectedStore(opening, place);
  const relay = await openRelay(opening, store);
  return { api: undefined, dataFolder: undefined, parts: [store, keysPart, ...relay] };
}
