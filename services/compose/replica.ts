import { createLeftOpenCloser } from '../../shared/commands/recovery/closeLeftOpen.ts';
import {
  closeTurnsOfTheDead,
  type SweepContext,
} from '../../shared/commands/recovery/closeTurnsOfTheDead.ts';
import type { RunContext } from '../../shared/commands/run/context.ts';
import { createDeathWatch } from '../../shared/commands/recovery/deathWatch.ts';
import type { Config } from '../../shared/config.ts';
import type { Logger } from '../../shared/logger.ts';
import type { Registration } from '../../shared/ports/instances.ts';
import { rememberedRows } from '../../shared/queries/rememberedRows.ts';
import { openEventStore } from './eventStore.ts';
import { onceStoreAnswers } from '../server/onceStoreAnswers.ts';
import { untilShown } from '../server/waitForReadModels.ts';
import { opening, type CloseLater } from './opening.ts';
import { openRelay } from './relay.ts';
import { openInstances, openReadModels, projectorStores } from './postgres.ts';
import { healingOf } from '../projector/refusedCheckpoint.ts';
import { startProjector } from '../projector/startProjector.ts';
import { reportDamage } from '../server/reportDamage.ts';
import { openRunContext, systemClock, systemIds } from './runContext.ts';
import type { ServiceName } from '../server/serviceNames.ts';
import type { Turnlog } from '../server/turnlog.ts';

/** The API of one replica, and how it enters the list of instances; it leaves the list in order unless it has left turns open. */
async function openApi(
  config: Config,
  sweeping: SweepContext & Pick<RunContext, 'readModels'>,
  closeLater: CloseLater,
) {
  const { store, damaged, readModels, instances, watch, clock, logger } = sweeping;
  const instanceId = systemIds.uuid();
  let registration: Registration | undefined;
  const isGone = (owner: string): boolean => owner === instanceId || watch.isDead(owner);
  const context = await openRunContext(
    config,
    {
      store,
      damaged,
      readModels,
      known: rememberedRows(readModels, clock),
      instanceId,
      isGone,
      logger,
    },
    closeLater,
  );
  closeLater(async () => {
    if (context.leftOpen.size > 0) return;
    await registration
      ?.end()
      .catch((error: unknown) =>
        logger.warn(
          { err: error },
          'this instance could not be taken out of the list of instances',
        ),
      );
  });
  return {
    context,
    register: async () => void (registration = await instances.register(instanceId)),
  };
}

/**
 * One process of several over the same PostgreSQL and EventStoreDB. It keeps nothing of its own: its name is new with every
 * start. Errors: `store_unavailable`, `invalid_request` (the models file).
 */
export const wireReplica = (
  config: Config & { DATABASE_URL: string },
  logger: Logger,
  services: readonly ServiceName[],
): Promise<Turnlog> =>
  opening(async (closeLater) => {
    const store = await openEventStore(
      { dataFolder: '', eventStoreDbUrl: config.EVENTSTOREDB_URL },
      logger,
    );
    closeLater(store.close);
    const readModels = await openReadModels(config.DATABASE_URL);
    closeLater(readModels.close);
    const instances = openInstances(config.DATABASE_URL);
    closeLater(instances.close);
    const damaged = reportDamage(logger);
    const watch = createDeathWatch(instances, systemClock);
    const sweeping = {
      store,
      damaged,
      readModels,
      instances,
      watch,
      clock: systemClock,
      ids: systemIds,
      logger,
    };
    const api = services.includes('api') ? await openApi(config, sweeping, closeLater) : undefined;
    const projector = services.includes('projector')
      ? startProjector({
          log: store,
          ...projectorStores(config.DATABASE_URL, logger),
          clock: systemClock,
          logger,
        })
      : undefined;
    closeLater(() => projector?.close());
    const relay = services.includes('relay') ? await openRelay(config, logger, store) : undefined;
    closeLater(() => relay?.close());
    let prepared = false;
    return {
      store,
      api: api?.context,
      projector,
      relay,
      dataFolder: undefined,
      projection: async () => ({
        caught_up: prepared,
        healing: healingOf(await readModels.refusedCheckpoint()),
        parked_streams: await readModels.listParkedStreams(),
      }),
      healing: () => projector?.healing(),
      async prepare(signal) {
        if (api) await onceStoreAnswers(api.register, logger, signal);
        await untilShown(sweeping, signal);
        prepared = true;
      },
      damaged,
      closer: api && createLeftOpenCloser(api.context),
      sweep: (signal) => closeTurnsOfTheDead(sweeping, signal),
    };
  });
