import { createDataFolder } from '../../../infra/sqlite/dataFolder.ts';
import { currentGeneration } from '../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteReadModels } from '../../../infra/sqlite/readModels/readModels.ts';
import { openSqliteRebuildStore } from '../../../infra/sqlite/readModels/rebuildStore.ts';
import { VERSION } from '../../../infra/sqlite/readModels/schema.ts';
import { logChangedError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import type { ReadModels, RebuildStore } from '../../../shared/ports/readModels.ts';
import { createProgressChannel } from '../../../shared/projections/progress.ts';
import { followGenerations } from '../../followers/projector/followGenerations.ts';
import { startProjector } from '../../followers/projector/start.ts';
import { retryUntilStoreAvailable } from '../../process/startup/retryUntilStoreAvailable.ts';
import { waitForReadModels } from '../../process/startup/waitForReadModels.ts';
import { readModelsFolder, type StorageLocation } from '../logLocation.ts';
import {
  openReplicaReadModels,
  openDatabaseRebuild,
  projectorStores,
  requireDatabaseTables,
  testDatabase,
} from '../replica/postgres.ts';
import { systemClock } from '../system.ts';

/** The number that the read models of this release are kept under in a data folder. */
export const READ_MODELS_VERSION = VERSION.number;

/** After so long a command says what it waits for. */
const WAIT_NOTICE_MS = 3_000;
/** A command asks one thing after the other. */
const POOL_SIZE = 2;

/** Read models that operator commands bring up to date themselves. */
export interface OperatorReadModels {
  /**
   * Errors: `store_unavailable`, the signal's reason, `configuration_invalid` where they can't be
   * made.
   */
  openReadModels: () => Promise<ReadModels>;
  /**
   * Resolves when nothing of what was erased is left in the files of the index of words. Errors:
   * `store_unavailable`, the signal's reason.
   */
  purgeErasedWords: () => Promise<void>;
  /** The id of the log that they were built from; undefined where there are none. */
  followedLog: () => Promise<string | undefined>;
  /**
   * The generation that a rebuild makes. Errors: `data_folder_in_use` while another rebuild runs,
   * `store_unavailable`.
   */
  openRebuild: () => Promise<RebuildStore>;
}

const WAIT_MESSAGES = {
  standing_by:
    'The command waits until the read models show all of the log. It is not the one that fills them: either another projector is, ' +
    'whose /health/ready says how far it is, or a store is away.',
  active: 'The command waits until it has brought the read models up to date with the log.',
} as const;

interface ReadModelsContext {
  store: EventStore;
  logger: Logger;
  /** Ends every wait. */
  signal: AbortSignal;
}

/** Read models in the data folder. */
function folderReadModels(
  { store, logger, signal }: ReadModelsContext,
  folder: string,
): OperatorReadModels {
  async function openUpToDate(): Promise<ReadModels> {
    createDataFolder(folder);
    const progress = createProgressChannel();
    const caughtUp = new AbortController();
    const changed = new AbortController();
    await followGenerations({
      log: store,
      logger,
      signal: AbortSignal.any([caughtUp.signal, changed.signal, signal]),
      generations: {
        open: (atLeast) => openSqliteProjectionStore({ folder, atLeast }),
        current: () => currentGeneration(folder),
        // A server that is still on an older one deletes it when it has gone over.
        retireBefore: () => undefined,
      },
      onProgress(batch) {
        progress.publish(batch);
        if (batch.caughtUp) caughtUp.abort();
      },
      report({ type, reason }) {
        if (type === 'log_changed' && reason !== undefined) changed.abort(logChangedError(reason));
      },
    });
    changed.signal.throwIfAborted();
    signal.throwIfAborted();
    return openSqliteReadModels({ folder, progress });
  }

  async function followedLog(): Promise<string | undefined> {
    if (currentGeneration(folder) === undefined) return undefined;
    const current = await openSqliteProjectionStore({ folder });
    try {
      return (await current.checkpoint())?.log_id;
    } finally {
      await current.close();
    }
  }

  async function untilForgotten(): Promise<void> {
    const current = await openSqliteProjectionStore({ folder });
    try {
      for (;;) {
        const begun = performance.now();
        const forgotten = await current.forget?.(true);
        if (forgotten !== 'begun' && forgotten !== 'some') return;
        // A server that projects beside this command has its turn in between.
        await sleep(performance.now() - begun, signal);
      }
    } finally {
      await current.close();
    }
  }

  const openRebuild = (): Promise<RebuildStore> => openSqliteRebuildStore({ folder });
  return {
    openReadModels: openUpToDate,
    purgeErasedWords: untilForgotten,
    followedLog,
    openRebuild,
  };
}

/**
 * Read models in PostgreSQL: this process stands by for the projector until they are up to date.
 */
function databaseReadModels(
  { store, logger, signal }: ReadModelsContext,
  databaseUrl: string,
): OperatorReadModels {
  async function openUpToDate(): Promise<ReadModels> {
    await using opened = new AsyncDisposableStack();
    await using projecting = new AsyncDisposableStack();
    await retryUntilStoreAvailable(() => requireDatabaseTables(databaseUrl), logger, signal);
    await retryUntilStoreAvailable(() => testDatabase(databaseUrl), logger, signal);
    const readModels = opened.adopt(
      await openReplicaReadModels(databaseUrl, POOL_SIZE),
      (queries) => queries.close(),
    );
    const stores = projectorStores(databaseUrl, logger);
    const projector = projecting.adopt(
      startProjector({ log: store, ...stores, clock: systemClock, logger }),
      ({ close }) => close(),
    );
    const tellWait = setTimeout(
      () => logger.warn(projector.health(), WAIT_MESSAGES[projector.health().state]),
      WAIT_NOTICE_MS,
    );
    projecting.defer(() => clearTimeout(tellWait));
    await waitForReadModels({ store, readModels, logger }, signal, readModels.logChanged);
    opened.move();
    return readModels;
  }

  async function followedLog(): Promise<string | undefined> {
    const readModels = await openReplicaReadModels(databaseUrl, POOL_SIZE);
    try {
      return (await readModels.checkpoint())?.log_id;
    } finally {
      await readModels.close();
    }
  }

  async function openRebuild(): Promise<RebuildStore> {
    await requireDatabaseTables(databaseUrl);
    return openDatabaseRebuild(databaseUrl);
  }

  return {
    openReadModels: openUpToDate,
    purgeErasedWords: async () => undefined,
    followedLog,
    openRebuild,
  };
}

/** The read models of a place. */
export const operatorReadModels = (
  place: StorageLocation,
  updating: ReadModelsContext,
): OperatorReadModels =>
  place.kind === 'embedded'
    ? folderReadModels(updating, readModelsFolder(place))
    : databaseReadModels(updating, place.databaseUrl);
