import { existsSync } from 'node:fs';
import { createRateLimiter } from '../../../infra/ratelimit/memory.ts';
import { createDataFolder } from '../../../infra/sqlite/dataFolder.ts';
import { eventLogFile } from '../../../infra/sqlite/eventStore/database.ts';
import { acquireServerLock } from '../../../infra/sqlite/serverLock.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { guardAppends } from '../../../shared/eventlog/appendsWhileFollowed.ts';
import { withLeaves } from '../../../shared/eventlog/encryption/protectedStore.ts';
import { withBoundedBacklog } from '../../../shared/projections/boundedBacklog.ts';
import { withTextsShared } from '../../../shared/search/recentTexts.ts';
import { withStorageLimits } from '../../../shared/storage/limitedStore.ts';
import { evictErased } from '../../../shared/erasure/evictErased.ts';
import { startPolling, type PeriodicTask } from '../../process/upkeep/periodicTask.ts';
import {
  createDamagedRowReporter,
  createDamageReporter,
  damagedStreamsPart,
} from '../../process/health/reportDamage.ts';
import { openRunContext, runsPart, turnWatchPart } from '../api.ts';
import {
  unfinishedErasuresPart,
  restoredKeysPart,
  erasureNoticePart,
} from '../../process/upkeep/erasures.ts';
import { ownTurnsPart } from '../../process/upkeep/ownTurns.ts';
import { newestEventPart } from '../../process/startup/newestEvent.ts';
import { openProtectedStore, type OpenedParts, type Opening } from '../opening.ts';
import { appendWaitMs, locateReadModels, type EmbeddedLocation } from '../logLocation.ts';
import { requireServiceFolders } from '../serviceFolders.ts';
import { openThreadProver } from '../features/prover.ts';
import { openFeed } from '../features/feed.ts';
import { embeddedReplaysPart } from '../features/replays.ts';
import { openRelay } from '../features/relay.ts';
import { judgeClock, retentionSweepPart, witnessEvidence } from '../features/retention.ts';
import { systemClock } from '../system.ts';
import { openInstance } from './instance.ts';
import { openEmbeddedReadModels, readModelsPart } from './readModels.ts';
import { openStorageLimits } from '../features/storage.ts';
import { openEmbeddedWebhooks } from '../features/webhooks.ts';

/**
 * Opens the log in a data folder. A new log is reported: it may mean that the folder was lost, which
 * nothing else would reveal.
 */
async function openFolderLog(
  opening: Opening,
  place: EmbeddedLocation,
  log: { folder: string },
): ReturnType<typeof openProtectedStore> {
  const isNew = !existsSync(eventLogFile(log.folder));
  const opened = await openProtectedStore(opening, place);
  if (isNew)
    opening.logger.info(
      { data_folder: log.folder },
      'there was no event log in the data folder: an empty one was created',
    );
  return opened;
}

/** Logs the trouble of a store when it changes, for an adapter that does not log it itself. */
function logStoreTrouble(store: Pick<EventStore, 'trouble'>, logger: Logger): PeriodicTask {
  let loggedTrouble: string | undefined;
  return startPolling(async () => {
    const trouble = store.trouble();
    if (trouble === loggedTrouble) return;
    loggedTrouble = trouble;
    if (trouble === undefined) logger.info('the event log can be used again');
    else logger.warn(trouble);
  });
}

/**
 * Opens the service in one process, with its read models in the data folder, and its log there or in
 * a cluster.
 */
export async function openEmbedded(
  opening: Opening,
  place: EmbeddedLocation,
): Promise<OpenedParts> {
  const { logger, opened } = opening;
  const { dataFolder, log } = place;
  createDataFolder(dataFolder);
  requireServiceFolders(place, logger);
  opened.adopt(acquireServerLock(dataFolder), (lock) => lock.release());
  const { store, keyStore } = await ('folder' in log
    ? openFolderLog(opening, place, log)
    : openProtectedStore(opening, place));
  const prover = await openThreadProver(opening, place, store);
  const damaged = createDamageReporter(logger);
  const damagedRows = createDamagedRowReporter(logger);
  const models = await openEmbeddedReadModels(opening, place, prover.threadData, {
    // Rows are compared with events that fit their leaves.
    store: withLeaves(store, prover.leaves),
    damaged,
    damagedRows,
  });
  const { projector, readModels } = models;
  const limits = openStorageLimits(opening, readModels, [
    dataFolder,
    place.keysFolder,
    locateReadModels(place),
  ]);
  const storage = {
    store: withStorageLimits(
      withLeaves(
        guardAppends(
          withBoundedBacklog(withTextsShared(store, projector), projector.progress),
          () => projector.logChanged() ?? prover.check.refusal(),
        ),
        prover.leaves,
      ),
      limits,
    ),
    quotas: limits.quotas,
    damaged,
    readModels,
    cachedRows: { ...readModels, forget: models.forget },
    rateLimiter: createRateLimiter(),
    instance: await openInstance(place),
    sharesLog: !('folder' in log),
  };
  const api = await openRunContext(opening, storage);
  const relay = await openRelay(opening, store);
  // The adapter of a cluster logs its trouble itself, and may record the start of a turn late.
  const logPart =
    'folder' in log ? { upkeep: () => logStoreTrouble(store, logger) } : ownTurnsPart(api);
  const readModelsParts = [readModelsPart(projector, api, models.queries)];
  const feed = openFeed(opening, store);
  const clockJudge = judgeClock(api, {
    ...(await witnessEvidence(opening.config, prover.tiles)),
    now: systemClock.now,
    newest: store.head,
  });
  const { judge } = clockJudge;
  const retention = retentionSweepPart(api, {
    ...clockJudge,
    percent: opening.config.RETENTION_CONFIRM_PERCENT,
    runExclusively: (work) => work(new AbortController().signal).then(() => true),
    onErased: (erased) => evictErased(api, erased),
  });
  const parts = [
    store,
    // First: while the log may not be continued, turns that a crash left open are not closed either.
    prover.check.part,
    ...readModelsParts,
    newestEventPart({ ...api, checkpoint: models.queries.checkpoint }),
    // Before any part records an event with a clock that may be wrong.
    retention,
    runsPart(api),
    turnWatchPart(api),
    damagedStreamsPart(damaged),
    models.sampling,
    prover.part,
    feed.part,
    limits.part,
  ];
  const erasures = [
    erasureNoticePart(api),
    restoredKeysPart(api, keyStore),
    unfinishedErasuresPart(
      { ...api, judge },
      { api, ownsLog: true, appendWaitMs: appendWaitMs(log) },
    ),
  ];
  const webhooks = openEmbeddedWebhooks(
    opening,
    { ...api, ...feed.served, readModelsParts },
    place,
  );
  const read = { tiles: prover.tiles, ...feed.served, webhooks: webhooks.served };
  const last = [webhooks.part, embeddedReplaysPart(api, readModelsParts, place), logPart, ...relay];
  return { api: { ...api, judge, ...read }, dataFolder, parts: [...parts, ...erasures, ...last] };
}
