import { measureSpace } from '../../../infra/files/freeSpace.ts';
import { createDataFolder } from '../../../infra/sqlite/dataFolder.ts';
import { currentGeneration } from '../../../infra/sqlite/readModels/generations.ts';
import { isDiskFull, readModelsNotOpened } from '../../../infra/sqlite/readModels/failures.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteReadModels } from '../../../infra/sqlite/readModels/readModels.ts';
import {
  openSqliteLiveRows,
  openSqliteRowCopy,
} from '../../../infra/sqlite/readModels/verification.ts';
import { openSqliteRebuildStore } from '../../../infra/sqlite/readModels/rebuildStore.ts';
import { VERSION } from '../../../infra/sqlite/readModels/schema.ts';
import { logChangedError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import type {
  ProjectionStore,
  ReadModels,
  RebuildStore,
} from '../../../shared/ports/readModels.ts';
import { createProgressChannel } from '../../../shared/projections/progress.ts';
import type { LiveRows } from '../../../shared/readModels/integrity/rowReader.ts';
import type { RowCopy } from '../../../shared/readModels/integrity/verifyRows.ts';
import { isBelow, type FreeLevel } from '../../../shared/storage/diskWatch.ts';
import { followGenerations } from '../../followers/projector/followGenerations.ts';
import { startProjector } from '../../followers/projector/start.ts';
import { retryUntilStoreAvailable } from '../../process/startup/retryUntilStoreAvailable.ts';
import { waitForReadModels } from '../../process/startup/waitForReadModels.ts';
import { locateReadModels, type StorageLocation } from '../logLocation.ts';
import {
  openReplicaReadModels,
  openDatabaseRebuild,
  openDatabaseRows,
  projectorStores,
  requireDatabaseTables,
  testDatabase,
} from '../replica/postgres.ts';
import { systemClock } from '../system.ts';

/** The version of the read models of this release. */
export const READ_MODELS_VERSION = VERSION.number;

/** A command that waits for longer logs the reason. */
const WAIT_NOTICE_MS = 3_000;
/** A command runs its queries one after the other. */
const POOL_SIZE = 2;

/** Read models as operator commands use them, with or without a running server. */
export interface OperatorReadModels {
  /**
   * Opens the read models after this process has brought them up to date with the log. The caller
   * closes them.
   */
  openReadModels: () => Promise<ReadModels>;
  /**
   * Removes the remaining rows and words of erased turns from the files. Does nothing in a database, where
   * the services do that.
   */
  purgeErasedTurns: () => Promise<void>;
  /** The id of the log that the read models were built from; undefined if there are none. */
  followedLog: () => Promise<string | undefined>;
  /** Opens the generation that a rebuild writes; rejects while another rebuild runs. */
  openRebuild: () => Promise<RebuildStore>;
  /** Opens the rows that answer queries, as a verification reads them. */
  openLiveRows: () => Promise<LiveRows>;
  /** Opens the copy that a verification compares them with; rejects while another one runs. */
  openRowCopy: () => Promise<RowCopy>;
}

const WAIT_MESSAGES = {
  standing_by:
    'waiting until the read models are up to date: another process projects, and its /health/ready ' +
    'reports the progress, or a store is unavailable',
  active: 'waiting until this command has brought the read models up to date',
} as const;

interface ReadModelsContext {
  store: EventStore;
  logger: Logger;
  /** Cancels every wait. */
  signal: AbortSignal;
  /** DISK_STOP_FREE: a copy of the read models is not filled further. */
  stopFree: FreeLevel;
}

const openStore: typeof openSqliteProjectionStore = (options) =>
  openSqliteProjectionStore(options).catch((error: unknown) => {
    throw readModelsNotOpened(options.folder, error);
  });

const diskFullError = (folder: string, cause?: unknown): TurnlogError =>
  new TurnlogError(
    'storage_full',
    `Too little disk space is free in ${folder} for a copy of the read models: a command leaves to the service what DISK_STOP_FREE reserves. The unfinished copy was removed. Make room for about as much as its read-models folder has, and repeat the command.`,
    { cause },
  );

/**
 * A store that a command fills with a copy of the read models, beside a service that needs the space
 * below `stopFree`: `apply` then throws `storage_full`, and also when the disk is full.
 */
export const withReservedSpace = <Store extends Pick<ProjectionStore, 'apply'>>(
  store: Store,
  folder: string,
  stopFree: FreeLevel,
): Store => ({
  ...store,
  async apply(events, reached) {
    const space = await measureSpace(folder);
    if (space && isBelow(stopFree, space)) throw diskFullError(folder);
    try {
      return await store.apply(events, reached);
    } catch (error) {
      throw isDiskFull(error) ? diskFullError(folder, error) : error;
    }
  },
});

/** Read models in the data folder. */
function folderReadModels(
  { store, logger, signal, stopFree }: ReadModelsContext,
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
        open: (atLeast) => openStore({ folder, atLeast }),
        current: () => currentGeneration(folder),
        // A server that still serves an older generation deletes it after switching.
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
    const current = await openStore({ folder });
    try {
      return (await current.checkpoint())?.log_id;
    } finally {
      await current.close();
    }
  }

  async function waitUntilForgotten(): Promise<void> {
    const current = await openStore({ folder });
    try {
      for (;;) {
        const startedAt = performance.now();
        const outcome = await current.forget?.(true);
        if (outcome !== 'begun' && outcome !== 'some') return;
        // Leaves a server that projects beside this command as much time as this pass took.
        await sleep(performance.now() - startedAt, signal);
      }
    } finally {
      await current.close();
    }
  }

  const openRebuild = async (): Promise<RebuildStore> =>
    withReservedSpace(await openSqliteRebuildStore({ folder }), folder, stopFree);
  return {
    openReadModels: openUpToDate,
    purgeErasedTurns: waitUntilForgotten,
    followedLog,
    openRebuild,
    openLiveRows: async () => openSqliteLiveRows({ folder }),
    openRowCopy: async () =>
      withReservedSpace(await openSqliteRowCopy({ folder }), folder, stopFree),
  };
}

/** Read models in PostgreSQL: this process competes to be the projector until they are up to date. */
function databaseReadModels(
  { store, logger, signal, stopFree }: ReadModelsContext,
  databaseUrl: string,
  copyFolder: string,
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
    const waitNotice = setTimeout(
      () => logger.warn(projector.health(), WAIT_MESSAGES[projector.health().state]),
      WAIT_NOTICE_MS,
    );
    projecting.defer(() => clearTimeout(waitNotice));
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
    purgeErasedTurns: async () => undefined,
    followedLog,
    openRebuild,
    async openLiveRows() {
      await requireDatabaseTables(databaseUrl);
      return openDatabaseRows(databaseUrl);
    },
    async openRowCopy() {
      createDataFolder(copyFolder);
      const copy = await openSqliteRowCopy({ folder: copyFolder });
      return withReservedSpace(copy, copyFolder, stopFree);
    },
  };
}

/**
 * The read models of a location. `copyFolder` is the folder in which a verification of a database keeps
 * its copy.
 */
export const operatorReadModels = (
  place: StorageLocation,
  updating: ReadModelsContext,
  copyFolder: string,
): OperatorReadModels =>
  place.kind === 'embedded'
    ? folderReadModels(updating, locateReadModels(place))
    : databaseReadModels(updating, place.databaseUrl, copyFolder);
