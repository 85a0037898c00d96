import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { createRateLimiter } from '../../infra/ratelimit/memory.ts';
import { dataFolderError, isFileError, createDataFolder } from '../../infra/sqlite/dataFolder.ts';
import { openSqliteReadModels } from '../../infra/sqlite/readModels/readModels.ts';
import { eventLogFile } from '../../infra/sqlite/eventStore/database.ts';
import { acquireServerLock } from '../../infra/sqlite/serverLock.ts';
import { appendsWhileFollowed } from '../../shared/eventlog/appendsWhileFollowed.ts';
import { LIMITS } from '../../shared/limits.ts';
import { untilCaughtUp } from '../../shared/projections/progress.ts';
import { rowsUntilChange } from '../../shared/projections/rowsUntilChange.ts';
import { neverStale } from '../../shared/projections/readYourWrites.ts';
import { evictErased } from '../../shared/erasure/evictErased.ts';
import { isPastDeadline } from '../../shared/runs/recovery/interruptTurn.ts';
import type { RunContext } from '../../shared/runs/context.ts';
import { distrustReason, lateReason, searchReason } from '../followers/projector/status.ts';
import {
  startProjectorThread,
  THREAD_LIMITS,
  type ProjectorThread,
} from '../followers/projector/startThread.ts';
import { onceStoreAnswers } from '../process/onceStoreAnswers.ts';
import { recoverOpenTurns } from '../process/recoverOpenTurns.ts';
import { reportDamage } from '../process/reportDamage.ts';
import type { Part } from '../process/turnlog.ts';
import { watchTrouble } from '../process/watchTrouble.ts';
import { openRunContext, runsPart, watchPart } from './api.ts';
import { finishPart, keysBackPart, noticePart } from '../process/erasures.ts';
import { instanceIdOf } from './instanceId.ts';
import { damagePart, openStore, type Opening, type Parts } from './opening.ts';
import { readModelsFolder, type EmbeddedPlace } from './logLocation.ts';
import { proverOfThread, type ThreadData } from './prover.ts';
import { openFeed } from './feed.ts';
import { replaysAlone } from './replays.ts';
import { openRelay } from './relay.ts';
import { judgeClock, sweepRetention } from './retention.ts';
import { systemClock } from './system.ts';
import { webhooksIn } from './webhooks.ts';

/**
 * By the own clock, as there is no other; only servers that share a cluster without a database
 * judge each other by it.
 */
const isOverdue = ({ deadline }: { deadline: string }): boolean =>
  isPastDeadline(deadline, systemClock.now());

/** The projector in a thread of its own, and the read models that it keeps up to date. */
async function openReadModels(
  { config, logger, opened }: Opening,
  place: EmbeddedPlace,
  threadData: () => ThreadData,
) {
  const spawn = (): Worker => {
    const workerData = threadData();
    return new Worker(new URL('./projectorThread.ts', import.meta.url), {
      workerData,
      transferList: [workerData.reports],
      resourceLimits: THREAD_LIMITS,
    });
  };
  const started = await startProjectorThread({ spawn, logger }).catch((error: unknown) => {
    throw isFileError(error) ? dataFolderError(place.dataFolder, error) : error;
  });
  const projector = opened.adopt(started, (thread) => thread.close());
  const { progress } = projector;
  const queries = opened.adopt(
    openSqliteReadModels({ folder: readModelsFolder(place), progress }),
    (readers) => readers.close(),
  );
  const readModels = { ...queries, ...rowsUntilChange(queries, progress) };
  const options = {
    waitMs: config.VISIBILITY_WAIT_MS,
    late: () => lateReason(projector) ?? projector.logChanged(),
  };
  return { projector, queries, readModels: neverStale(readModels, options) };
}

/** The read models show everything before what a crash left open is looked for in them. */
function readModelsPart(
  projector: ProjectorThread,
  api: RunContext,
  queries: ReturnType<typeof openSqliteReadModels>,
): Part {
  const doubt = (): string | undefined =>
    distrustReason({ healing: projector.healing(), logChanged: projector.logChanged() });
  let prepared = false;
  return {
    async health() {
      const trouble = projector.trouble();
      const late = lateReason(projector);
      const search_reason = queries.damagedWords() ?? searchReason(projector.notIndexed());
      return {
        projection: {
          caught_up: projector.caughtUp(),
          ...(trouble && { lag: { events: null, ms: trouble.sinceMs } }),
          ...(late !== undefined && { late }),
          doubt: doubt(),
          unindexed_turns: await queries.countUnindexed(),
          ...(search_reason !== undefined && { search_reason }),
          erases_words: await queries.holdsErased(),
          parked_streams: await api.readModels.listParkedStreams(LIMITS.health.streams),
        },
      };
    },
    // A start waits for them; later on much is served without them.
    trouble: () => (prepared ? undefined : lateReason(projector)),
    doubt,
    async prepare(signal) {
      await untilCaughtUp(projector.progress, signal);
      await onceStoreAnswers(() => recoverOpenTurns(api, signal), api.logger, signal);
      prepared = true;
    },
  };
}

/**
 * The log in a data folder; says so where there was none, because a folder that is gone is nothing
 * that anybody else would tell from a first start.
 */
async function openOwnLog(
  opening: Opening,
  place: EmbeddedPlace,
  log: { folder: string },
): ReturnType<typeof openStore> {
  const isNew = !existsSync(eventLogFile(log.folder));
  const opened = await openStore(opening, place);
  if (isNew)
    opening.logger.info(
      { data_folder: log.folder },
      'there was no event log in the data folder: a new one was made, and it is empty',
    );
  return opened;
}

/**
 * The service in one process, with its read models in the data folder, and its log there or in a
 * cluster.
 * Errors: `data_folder_in_use`, `store_unavailable`, `configuration_invalid` (the models file, the
 * data folder).
 */
export async function openEmbedded(opening: Opening, place: EmbeddedPlace): Promise<Parts> {
  const { logger, opened } = opening;
  const { dataFolder, log } = place;
  createDataFolder(dataFolder);
  opened.adopt(acquireServerLock(dataFolder), (lock) => lock.release());
  const { store, keyStore } = await ('folder' in log
    ? openOwnLog(opening, place, log)
    : openStore(opening, place));
  const prover = await proverOfThread(opening.config, place, store);
  const models = await openReadModels(opening, place, prover.threadData);
  const { projector, readModels } = models;
  const id = instanceIdOf(dataFolder);
  // The lock leaves nobody else to run a turn of this folder's log, under whatever name it began. A
  // cluster may have other servers.
  const isGone = (owner: string): boolean => 'folder' in log || owner === id;
  const damaged = reportDamage(logger);
  const storage = {
    store: appendsWhileFollowed(store, projector.logChanged),
    damaged,
    readModels,
    cachedRows: readModels,
    rateLimiter: createRateLimiter(),
    instance: { id, isGone, isOverdue },
    sharesLog: !('folder' in log),
  };
  const api = await openRunContext(opening, storage);
  const relay = await openRelay(opening, store);
  // A cluster's adapter tells of its trouble itself.
  const watch = 'folder' in log ? [{ upkeep: () => watchTrouble(store, logger) }] : [];
  const shown = readModelsPart(projector, api, models.queries);
  const feed = openFeed(opening, store);
  const parts = [
    store,
    shown,
    runsPart(api),
    watchPart(api),
    damagePart(damaged),
    prover.part,
    feed.part,
  ];
  const { VISIBILITY_WAIT_MS: visibilityWaitMs } = opening.config;
  const judge = judgeClock(store, { now: systemClock.now, newest: store.head });
  const erasures = [
    noticePart(api),
    keysBackPart(api, keyStore),
    finishPart({ ...api, judge }, { api, alone: true, visibilityWaitMs }),
    sweepRetention(api, {
      judge,
      alone: (work) => work(new AbortController().signal).then(() => true),
      onErased: (erased) => evictErased(api, erased),
    }),
  ];
  const webhooks = webhooksIn(opening, { ...api, ...feed.served, shown: [shown] }, place);
  const read = { tiles: prover.tiles, ...feed.served, webhooks: webhooks.served };
  const last = [webhooks.part, replaysAlone(api, [shown]), ...watch, ...relay];
  return { api: { ...api, judge, ...read }, dataFolder, parts: [...parts, ...erasures, ...last] };
}
