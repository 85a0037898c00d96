import {
  closeOrphanedTurns,
  type SweepContext,
  createInstanceMonitor,
} from '../../../shared/runs/recovery/closeOrphanedTurns.ts';
import { evictErased } from '../../../shared/erasure/evictErased.ts';
import { guardAppends } from '../../../shared/eventlog/appendsWhileFollowed.ts';
import {
  withLeaves,
  withTextsForRows,
} from '../../../shared/eventlog/encryption/protectedStore.ts';
import { runTask } from '../../../shared/lib/concurrency/eventLoopWatchdog.ts';
import { withStorageLimits } from '../../../shared/storage/limitedStore.ts';
import type { StorageQuotas } from '../../../shared/storage/quotas.ts';
import type { RunContext } from '../../../shared/runs/context.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { openOwnTree } from '../../../shared/transparency/ownTree.ts';
import { createLeafComparison } from '../../../shared/transparency/leaves/leafComparison.ts';
import type { Registration } from '../../../shared/ports/instances.ts';
import { checkedReadModels } from '../../../shared/readModels/integrity/checkedReadModels.ts';
import { cacheRowsForOutage } from '../../../shared/projections/cacheRowsForOutage.ts';
import { changedLogReason, distrustReason } from '../../followers/projector/status.ts';
import { healingReason } from '../../followers/projector/heal.ts';
import { startRolloutProjector } from '../../followers/projector/rolloutProjector.ts';
import { startProjector } from '../../followers/projector/start.ts';
import { retryUntilStoreAvailable } from '../../process/startup/retryUntilStoreAvailable.ts';
import {
  createDamagedRowReporter,
  createDamageReporter,
  damagedStreamsPart,
} from '../../process/health/reportDamage.ts';
import { monitorReadModels } from '../../process/health/readModelsHealth.ts';
import { rowSamplingPart } from '../../process/upkeep/rowSampling.ts';
import { startPolling, startSweeper } from '../../process/upkeep/periodicTask.ts';
import type { ProcessPart, ServedRuns } from '../../process/processParts.ts';
import { newestEventPart } from '../../process/startup/newestEvent.ts';
import { waitForMatchingLog } from '../../process/startup/waitForMatchingLog.ts';
import { waitForReadModels } from '../../process/startup/waitForReadModels.ts';
import { openRunContext, runsPart, turnWatchPart } from '../api.ts';
import {
  unfinishedErasuresPart,
  restoredKeysPart,
  erasedKeysPart,
  erasureNoticePart,
} from '../../process/upkeep/erasures.ts';
import { openProtectedStore, type OpenedParts, type Opening } from '../opening.ts';
import { appendWaitMs, type ReplicaLocation } from '../logLocation.ts';
import {
  databasePart,
  openInstanceList,
  openReplicaReadModels,
  openSharedState,
  openTiles,
  projectorStores,
  runRetentionExclusively,
  type PostgresReadModels,
} from './postgres.ts';
import { openProver, openReplicaTreeCheck, replicaTrees } from '../features/prover.ts';
import { openFeed } from '../features/feed.ts';
import { replicaReplaysPart } from '../features/replays.ts';
import { openRelay } from '../features/relay.ts';
import { judgeDatabaseClock, retentionSweepPart, witnessEvidence } from '../features/retention.ts';
import { openStorageLimits } from '../features/storage.ts';
import { systemClock, systemIds } from '../system.ts';
import { openReplicaWebhooks, openServedWebhooks } from '../features/webhooks.ts';

/** The context of a replica, for any choice of services. */
type ReplicaContext = SweepContext &
  Pick<RunContext, 'logger'> & {
    quotas: StorageQuotas;
    readModels: PostgresReadModels & { forget: (stream?: string) => void };
  };

/** Replicas rely on the list of instances, which the sweep checks, rather than on deadlines. */
const isOverdue = (): boolean => false;

/**
 * Opens the API of a replica. It registers in the list of instances; on close it unregisters unless
 * it leaves turns open.
 */
async function openApi(
  opening: Opening,
  common: ReplicaContext,
  databaseUrl: string,
): Promise<{ api: ServedRuns; part: ProcessPart }> {
  const { store, quotas, damaged, readModels, instances, instanceMonitor, logger } = common;
  const id = systemIds.uuid();
  const isGone = (owner: string): boolean => owner === id || instanceMonitor.isDead(owner);
  const remembered = cacheRowsForOutage(readModels, store);
  const cachedRows = {
    ...remembered,
    forget(stream?: string) {
      readModels.forget(stream);
      remembered.forget?.(stream);
    },
  };
  const shared = await openSharedState(opening.opened, databaseUrl, id);
  const instance = { id, isGone, isOverdue };
  const storage = { store, quotas, damaged, readModels, cachedRows, instance, ...shared };
  const api = await openRunContext(opening, storage);
  let registration: Registration | undefined;
  opening.opened.defer(async () => {
    if (api.runState.openTurnQueue.size > 0) return;
    await registration?.end().catch((err: unknown) => {
      logger.warn({ err }, 'this instance could not be removed from the list of instances');
    });
  });
  const register = async (): Promise<void> => {
    registration = await instances.register(id);
  };
  const prepare = (signal: AbortSignal) => retryUntilStoreAvailable(register, logger, signal);
  return { api, part: { ...runsPart(api), prepare } };
}

/**
 * Opens the projector, which competes with those of other processes for leadership. A process without
 * the projector service runs one only while another release writes to the read models.
 */
function openProjector(
  opening: Opening,
  common: ReplicaContext,
  databaseUrl: string,
): ProcessPart[] {
  const { store, readModels, logger } = common;
  const log = withTextsForRows(store, store.keys);
  const options = { log, clock: systemClock, logger, keys: store.keys };
  const start = () =>
    runTask('projector', () =>
      startProjector({ ...options, ...projectorStores(databaseUrl, logger) }),
    );
  if (!opening.services.includes('projector')) {
    const needed = readModels.otherVersionWritten;
    opening.opened.adopt(startRolloutProjector({ isNeeded: needed, start, logger }), ({ close }) =>
      close(),
    );
    return [];
  }
  const projector = opening.opened.adopt(start(), ({ close }) => close());
  return [
    {
      health: async () => ({ projector: projector.health() }),
      distrustReason: () => distrustReason(projector.healing()),
    },
  ];
}

/** The part of the read models, which another process may keep up to date. */
function readModelsPart(common: ReplicaContext): ProcessPart {
  const { store, readModels, logger } = common;
  let mismatch: string | undefined;
  const { poll, health } = monitorReadModels({
    ...readModels,
    listParkedStreams: () => readModels.listParkedStreams(LIMITS.health.streams),
    async distrustReason() {
      return distrustReason(healingReason(await readModels.refusedCheckpoint()));
    },
  });
  return {
    health: async () => ({ projection: health() }),
    // On another log, no request that writes is served.
    trouble: () => changedLogReason(mismatch ?? readModels.logChanged()),
    async prepare(signal) {
      await waitForMatchingLog(
        {
          store,
          checkpoint: readModels.checkpoint,
          logger,
          onLogChanged: (reason) => void (mismatch = reason),
        },
        signal,
      );
      await waitForReadModels(common, signal);
      await retryUntilStoreAvailable(poll, logger, signal);
    },
    upkeep: () => startPolling(poll),
  };
}

/** The part that closes turns of dead instances, and those that this process left open. */
function orphanedTurnsPart(common: ReplicaContext, api: RunContext | undefined): ProcessPart {
  const own = api && { id: api.instance.id, openTurnQueue: api.runState.openTurnQueue };
  const sweep = (signal: AbortSignal) => closeOrphanedTurns({ ...common, own }, signal);
  return { upkeep: () => startSweeper(sweep, common.logger) };
}

/**
 * Opens one of several processes over the same PostgreSQL and EventStoreDB. It stores nothing
 * locally, and has a new instance id with every start.
 */
export async function openReplica(opening: Opening, place: ReplicaLocation): Promise<OpenedParts> {
  const { logger, services, opened } = opening;
  const { databaseUrl } = place;
  const { DATABASE_POOL_SIZE: poolSize } = opening.config;
  const queries = opened.adopt(await openReplicaReadModels(databaseUrl, poolSize), ({ close }) =>
    close(),
  );
  const { store: log, keyStore, keysPart } = await openProtectedStore(opening, place);
  const tiles = opened.adopt(await openTiles(databaseUrl), (reader) => reader.close());
  const trees = replicaTrees(opening, tiles.treeOf);
  const check = await openReplicaTreeCheck(opening, log, trees);
  // The disks of a replica belong to its servers, so it watches no folder.
  const limits = openStorageLimits(opening, queries, []);
  const ownTree = openOwnTree(log, trees);
  const leaves = createLeafComparison(log, ownTree);
  const guarded = guardAppends(log, () => queries.logChanged() ?? check.refusal());
  const store = withStorageLimits(withLeaves(guarded, leaves), limits);
  const instances = opened.adopt(openInstanceList(databaseUrl), (list) => list.close());
  const damaged = createDamageReporter(logger);
  const damagedRows = createDamagedRowReporter(logger);
  const readModels = checkedReadModels(queries, { store, damaged }, damagedRows);
  const sampling = rowSamplingPart({
    readModels: queries,
    source: { store, damaged },
    damaged: damagedRows,
    memory: opening.memory,
    forget: readModels.forget,
  });
  const watch = createInstanceMonitor(instances);
  const system = { clock: systemClock, ids: systemIds, logger };
  const common: ReplicaContext = {
    store,
    quotas: limits.quotas,
    damaged,
    readModels,
    instances,
    instanceMonitor: watch,
    ...system,
  };
  const runs = services.includes('api') ? await openApi(opening, common, databaseUrl) : undefined;
  const clockJudge = judgeDatabaseClock(common, {
    ...(await witnessEvidence(opening.config, ownTree)),
    isIndependent: opening.config.DATABASE_CLOCK_INDEPENDENT,
  });
  const { judge } = clockJudge;
  const feed = openFeed(opening, store);
  // On separate connections: reads of the public log do not delay the comparison of streams.
  const publicTiles = opened.adopt(await openTiles(databaseUrl), (reader) => reader.close());
  const served = runs && {
    ...runs.api,
    ...feed.served,
    judge,
    webhooks: await openServedWebhooks(opening, databaseUrl),
    tiles: openOwnTree(log, replicaTrees(opening, publicTiles.treeOf)),
  };
  const projector = openProjector(opening, common, databaseUrl);
  const models = readModelsPart(common);
  const readModelsParts = [...projector, models];
  const webhookContext = { ...common, ...feed.served, readModelsParts };
  const followers = [
    ...projector,
    // Not compared with a tree before it declares the one to compare with.
    await openProver(opening, guarded, { databaseUrl, check, leaves, findings: tiles.findings }),
    ...openReplicaWebhooks(opening, webhookContext, databaseUrl),
    ...(runs ? [await replicaReplaysPart(opening, runs.api, readModelsParts, databaseUrl)] : []),
    ...(await openRelay(opening, store)),
  ];
  const shown = [
    models,
    newestEventPart({ ...common, checkpoint: queries.checkpoint }),
    orphanedTurnsPart(common, runs?.api),
    damagedStreamsPart(damaged),
    sampling,
  ];
  const erasures = [
    ...(runs
      ? [erasureNoticePart(runs.api), restoredKeysPart(runs.api, keyStore)]
      : [erasedKeysPart(common)]),
    unfinishedErasuresPart(
      { ...common, judge },
      {
        api: runs?.api,
        ownsLog: false,
        appendWaitMs: appendWaitMs(place.log),
      },
    ),
    retentionSweepPart(common, {
      ...clockJudge,
      percent: opening.config.RETENTION_CONFIRM_PERCENT,
      runExclusively: (work) => runRetentionExclusively(databaseUrl, work),
      onErased: (erased) => runs && evictErased(runs.api, erased),
    }),
  ];
  const own = runs ? [runs.part, turnWatchPart(runs.api)] : [];
  const stores = [
    store,
    databasePart(databaseUrl, logger),
    check.part,
    keysPart,
    ...own,
    feed.part,
  ];
  const parts = [...stores, ...shown, ...erasures, ...followers];
  return { api: served, dataFolder: undefined, parts };
}
