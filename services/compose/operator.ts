import { typeIds } from '../../infra/ids/typeIds.ts';
import { currentGeneration } from '../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteReadModels } from '../../infra/sqlite/readModels/readModels.ts';
import { openSqliteRebuildStore } from '../../infra/sqlite/readModels/rebuildStore.ts';
import type { AccountCommandContext } from '../../shared/commands/accounts.ts';
import type { Config } from '../../shared/config.ts';
import type { Logger } from '../../shared/logger.ts';
import type { EventStore } from '../../shared/ports/eventStore.ts';
import type { Publisher } from '../../shared/ports/publisher.ts';
import type { ReadModels, RebuildStore } from '../../shared/ports/readModels.ts';
import { createProgressSource } from '../../shared/projections/progress.ts';
import { followGenerations } from '../projector/followGenerations.ts';
import { rebuildReadModels, type RebuildProgress } from '../projector/rebuildReadModels.ts';
import { prepareDataFolder } from './dataFolder.ts';
import { openEventStore, readModelsFolder, type Place } from './eventStore.ts';
import { untilShown } from '../server/waitForReadModels.ts';
import { startProjector } from '../projector/startProjector.ts';
import { openReplayPublisher } from './publisher.ts';
import { openReadModels, openRebuildStore, projectorStores } from './postgres.ts';
import { systemClock } from './runContext.ts';

/** A store by its name: a connection string, or the data folder of an embedded one. Errors: those of its adapter. */
export const openNamedStore = (name: string, logger: Logger): Promise<EventStore> =>
  openEventStore(
    /^esdb(\+discover)?:/.test(name)
      ? { dataFolder: '', eventStoreDbUrl: name }
      : { dataFolder: prepareDataFolder(name), eventStoreDbUrl: undefined },
    logger,
  );

/** What operator commands work with; all of it may be used beside a running server. */
export interface Operator extends AccountCommandContext {
  /**
   * The read models, brought up to date by this process: no server need be running.
   * Errors: the signal's reason.
   */
  readModels: () => Promise<ReadModels>;
  /** Resolves false when the signal aborted first; the next call goes on from there. */
  rebuild: (
    signal: AbortSignal,
    onProgress: (progress: RebuildProgress) => void,
  ) => Promise<boolean>;
  /** Where a replay publishes to. */
  replayPublisher: (topic: string) => Promise<Publisher>;
  close: () => Promise<void>;
}

type Storage = Pick<Operator, 'readModels'> & { openRebuildStore: () => Promise<RebuildStore> };

interface Opening {
  store: EventStore;
  logger: Logger;
  /** Ends every wait of the operator's. */
  signal: AbortSignal;
}

/** Read models in the data folder. */
function inFolder({ store, logger, signal }: Opening, folder: string): Storage {
  async function openUpToDate(): Promise<ReadModels> {
    const progress = createProgressSource();
    const caughtUp = new AbortController();
    await followGenerations({
      log: store,
      logger,
      signal: AbortSignal.any([caughtUp.signal, signal]),
      generations: {
        open: (atLeast) => openSqliteProjectionStore({ folder, atLeast }),
        current: () => currentGeneration(folder),
        // A server that is still on an older one deletes it when it has gone over.
        retireBefore: () => undefined,
      },
      onProgress(reached) {
        progress.publish(reached);
        if (reached.caughtUp) caughtUp.abort();
      },
      onHealing: () => undefined,
    });
    signal.throwIfAborted();
    return openSqliteReadModels({ folder, progress });
  }

  return { readModels: openUpToDate, openRebuildStore: () => openSqliteRebuildStore({ folder }) };
}

/** Read models in PostgreSQL: this process stands by for the projector until they are up to date. */
function inDatabase({ store, logger, signal }: Opening, databaseUrl: string): Storage {
  async function openUpToDate(): Promise<ReadModels> {
    const readModels = await openReadModels(databaseUrl);
    const projector = startProjector({
      log: store,
      ...projectorStores(databaseUrl, logger),
      clock: systemClock,
      logger,
    });
    try {
      await untilShown({ store, readModels, logger }, signal);
      return readModels;
    } catch (error) {
      await readModels.close();
      throw error;
    } finally {
      await projector.close();
    }
  }

  return { readModels: openUpToDate, openRebuildStore: () => openRebuildStore(databaseUrl) };
}

/**
 * Opens the configured store for operator commands; the signal ends their waits.
 * Errors: `store_unavailable`, `invalid_request`.
 */
export async function openOperator(
  config: Config,
  logger: Logger,
  interrupted = new AbortController().signal,
): Promise<Operator> {
  const { DATABASE_URL, EVENTSTOREDB_URL } = config;
  const dataFolder = DATABASE_URL === undefined ? prepareDataFolder(config.DATA_DIR) : '';
  const place: Place = { dataFolder, eventStoreDbUrl: EVENTSTOREDB_URL };
  const store = await openEventStore(place, logger);
  const parts: Opening = { store, logger, signal: interrupted };
  const storage =
    DATABASE_URL === undefined
      ? inFolder(parts, readModelsFolder(place))
      : inDatabase(parts, DATABASE_URL);
  let readModels: Promise<ReadModels> | undefined;
  return {
    store,
    clock: systemClock,
    ids: typeIds,
    readModels: () => (readModels ??= storage.readModels()),
    rebuild: async (signal, onProgress) =>
      rebuildReadModels({
        log: store,
        store: await storage.openRebuildStore(),
        signal,
        onProgress,
        logger,
      }),
    replayPublisher: (topic) => openReplayPublisher(config, logger, topic),
    close: async () => {
      // Whoever asked for them knows why they could not be opened.
      await (await readModels?.catch(() => undefined))?.close();
      await store.close();
    },
  };
}
