import type { Config } from '../../../shared/lib/config/config.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import {
  withOpenTexts,
  type ProtectedStore,
} from '../../../shared/eventlog/encryption/protectedStore.ts';
import { runTask } from '../../../shared/lib/concurrency/eventLoopWatchdog.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { startRelay } from '../../followers/relay/start.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import { openProtectedStore, type Opening, type OpenedParts } from '../opening.ts';
import { checkPositionFormat } from '../eventStore.ts';
import { locateStorage, type StorageLocation } from '../logLocation.ts';
import { requireServiceFolders } from '../serviceFolders.ts';
import { openPublisher } from './publisher.ts';
import { systemClock } from '../system.ts';

const BEGINNING = 'beginning';

/** The start position of KAFKA_START_AFTER, and whether the option is set. */
const startPosition = ({
  KAFKA_START_AFTER: after,
}: Config): { startAfter: Position | undefined; startIsStated: boolean } => ({
  startAfter: after === BEGINNING ? undefined : (after as Position | undefined),
  startIsStated: after !== undefined,
});

/** Rejects with `configuration_invalid` if KAFKA_START_AFTER can't be a position of the log. */
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

/** The part of the relay to Kafka; empty if the process does not run the relay service. */
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
  const relay = opened.adopt(
    runTask('relay', () => startRelay(options)),
    ({ close }) => close(),
  );
  return [{ health: async () => ({ relay: await relay.health() }) }];
}

/** Opens a process that only runs the relay: it needs the log, its text keys and Kafka. */
export async function openRelayAlone(
  opening: Opening,
  place: StorageLocation,
): Promise<OpenedParts> {
  requireServiceFolders(place, opening.logger);
  const { store, keysPart } = await openProtectedStore(opening, place);
  const relay = await openRelay(opening, store);
  return { api: undefined, dataFolder: undefined, parts: [store, keysPart, ...relay] };
}
