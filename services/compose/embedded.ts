import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { openSqliteReadModels } from '../../infra/sqlite/readModels/readModels.ts';
import { acquireServerLock } from '../../infra/sqlite/serverLock.ts';
import { createLeftOpenCloser } from '../../shared/commands/recovery/closeLeftOpen.ts';
import type { Config } from '../../shared/config.ts';
import type { Logger } from '../../shared/logger.ts';
import { prepareDataFolder } from './dataFolder.ts';
import { openEventStore, readModelsFolder } from './eventStore.ts';
import { onceStoreAnswers } from '../server/onceStoreAnswers.ts';
import { recoverOpenTurns } from '../server/recoverOpenTurns.ts';
import { untilCaughtUp } from '../server/waitForReadModels.ts';
import { opening } from './opening.ts';
import { openRelay } from './relay.ts';
import { startProjectorThread, THREAD_LIMITS } from '../projector/startProjectorThread.ts';
import { reportDamage } from '../server/reportDamage.ts';
import { openRunContext, systemIds } from './runContext.ts';
import type { Turnlog } from '../server/turnlog.ts';

/** The name of the folder's server, made at the first start. The server lock sees to it that only one process has it. */
function instanceIdOf(folder: string): string {
  const file = join(folder, 'instance-id');
  const known = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (known !== '') return known;
  const made = systemIds.uuid();
  writeFileSync(file, `${made}\n`, { mode: 0o600 });
  return made;
}

/**
 * The service in one process, with its read models in the data folder, and its log there or in a cluster.
 * Errors: `data_folder_in_use`, `store_unavailable`, `invalid_request` (the models file, the data folder).
 */
export const wireEmbedded = (config: Config, logger: Logger, relays: boolean): Promise<Turnlog> =>
  opening(async (closeLater) => {
    const dataFolder = prepareDataFolder(config.DATA_DIR);
    const lock = acquireServerLock(dataFolder);
    closeLater(lock.release);
    const place = { dataFolder, eventStoreDbUrl: config.EVENTSTOREDB_URL };
    const store = await openEventStore(place, logger);
    closeLater(store.close);
    const projector = await startProjectorThread({
      spawn: () =>
        new Worker(new URL('projectorThread.ts', import.meta.url), {
          workerData: place,
          resourceLimits: THREAD_LIMITS,
        }),
      logger,
    });
    closeLater(projector.close);
    const readModels = openSqliteReadModels({
      folder: readModelsFolder(place),
      progress: projector.progress,
    });
    closeLater(readModels.close);
    const instanceId = instanceIdOf(dataFolder);
    // The lock leaves nobody else to run a turn of this folder's log, under whatever name it began. A cluster may have other servers.
    const isGone = (owner: string): boolean =>
      config.EVENTSTOREDB_URL === undefined || owner === instanceId;
    const context = await openRunContext(
      config,
      {
        store,
        damaged: reportDamage(logger),
        readModels,
        known: readModels,
        instanceId,
        isGone,
        logger,
      },
      closeLater,
    );
    const relay = relays ? await openRelay(config, logger, store) : undefined;
    closeLater(() => relay?.close());
    return {
      store,
      api: context,
      projector: undefined,
      relay,
      dataFolder,
      projection: async () => ({
        caught_up: projector.caughtUp(),
        healing: projector.healing(),
        parked_streams: await readModels.listParkedStreams(),
      }),
      healing: projector.healing,
      async prepare(signal) {
        await untilCaughtUp(projector.progress, signal);
        await onceStoreAnswers(() => recoverOpenTurns(context, signal), logger, signal);
      },
      damaged: context.damaged,
      closer: createLeftOpenCloser(context),
      // The one server of its folder has no others to look after.
      sweep: () => Promise.resolve(),
    };
  });
