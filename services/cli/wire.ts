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
import { prepareDataFolder } from '../dataFolder.ts';
import { openEventStore, readModelsFolder, type Place } from '../eventStore.ts';
import { untilShown } from '../lifecycle.ts';
import { startProjector } from '../projector/startProjector.ts';
import { openReplayPublisher } from '../publisher.ts';
import { openReadModels, openRebuildStore, projectorStores } from '../postgres.ts';
import { systemClock } from '../runContext.ts';

/** A store by its name: a connection string, or the data folder of an embedded one. Errors: those of its adapter. */
export const openNamedStore = (name: string, logger: Logger): Promise<EventStore> =>
  openEventStore(/^esdb(\+discover)?:/.test(name) ? { dataFolder: '', eventStoreDbUrl: name } : { dataFolder: prepareDataFolder(name), eventStoreDbUrl: undefined }, logger);

/** What operator commands work with; all of it may be used beside a running server. */
export interface Operator extends AccountCommandContext {
  /** The read models, brought up to date by this process: no server need be running. */
  readModels: () => Promise<ReadModels>;
  /** Resolves false when the signal aborted first; the next call goes on from there. */
  rebuild: (signal: AbortSignal, onProgress: (progress: RebuildProgress) => void) => Promise<boolean>;
  /** Where a replay publishes to. */
  replayPublisher: (topic: string) => Promise<Publisher>;
  close: () => Promise<void>;
}

type Storage = Pick<Operator, 'readModels'> & { openRebuildStore: () => Promise<RebuildStore> };

/** Read models in the data folder. */
function inFolder(store: EventStore, folder: string, logger: Logger): Storage {
  async function openUpToDate(): Promise<ReadModels> {
    const progress = createProgressSource();
    const caughtUp = new AbortController();
    await followGenerations({
      log: store,
      logger,
      signal: caughtUp.signal,
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
    return openSqliteReadModels({ folder, progress });
  }

  return { readModels: openUpToDate, openRebuildStore: () => openSqliteRebuildStore({ folder }) };
}

/** Read models in PostgreSQL: this process stands by for the projector until they are up to date. */
function inDatabase(store: EventStore, databaseUrl: string, logger: Logger): Storage {
  async function openUpToDate(): Promise<ReadModels> {
    const readModels = await openReadModels(databaseUrl);
    const projector = startProjector({
      log: store,
      ...projectorStores(databaseUrl, logger),
      clock: systemClock,
      logger,
    });
    await untilShown({ store, readModels, logger }, new AbortController().signal);
    await projector.close();
    return readModels;
  }

  return { readModels: openUpToDate, openRebuildStore: () => openRebuildStore(databaseUrl) };
}

/** Opens the configured store for operator commands. Errors: `store_unavailable`, `invalid_request`. */
export async function openOperator(config: Config, logger: Logger): Promise<Operator> {
  const { DATABASE_URL, EVENTSTOREDB_URL } = config;
  const place: Place = { dataFolder: DATABASE_URL === undefined ? prepareDataFolder(config.DATA_DIR) : '', eventStoreDbUrl: EVENTSTOREDB_URL };
  const store = await openEventStore(place, logger);
  const storage = DATABASE_URL === undefined ? inFolder(store, readModelsFolder(place), logger) : inDatabase(store, DATABASE_URL, logger);
  let readModels: Promise<ReadModels> | undefined;
  return {
    store,
    clock: systemClock,
    ids: typeIds,
    readModels: () => (readModels ??= storage.readModels()),
    rebuild: async (signal, onProgress) => rebuildReadModels({ log: store, store: await storage.openRebuildStore(), signal, onProgress, logger }),
    replayPublisher: (topic) => openReplayPublisher(config, logger, topic),
    close: async () => {
      await (await readModels)?.close();
      await store.close();
    },
  };
}
