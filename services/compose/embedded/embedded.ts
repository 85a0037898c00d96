import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRateLimiter } from '../../../infra/ratelimit/memory.ts';
import { createDataFolder, dataFolderError } from '../../../infra/sqlite/dataFolder.ts';
import { eventLogFile } from '../../../infra/sqlite/eventStore/database.ts';
import { acquireServerLock } from '../../../infra/sqlite/serverLock.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { guardAppends } from '../../../shared/eventlog/appendsWhileFollowed.ts';
import { evictErased } from '../../../shared/erasure/evictErased.ts';
import { isPastDeadline } from '../../../shared/runs/recovery/interruptTurn.ts';
import type { PeriodicTask } from '../../process/upkeep/periodicTask.ts';
import { damagedStreamsPart, createDamageReporter } from '../../process/health/reportDamage.ts';
import { openRunContext, runsPart, turnWatchPart } from '../api.ts';
import {
  unfinishedErasuresPart,
  restoredKeysPart,
  erasureNoticePart,
} from '../../process/upkeep/erasures.ts';
import { openProtectedStore, type OpenedParts, type Opening } from '../opening.ts';
import type { EmbeddedLocation } from '../logLocation.ts';
import { openThreadProver } from '../features/prover.ts';
import { openFeed } from '../features/feed.ts';
import { embeddedReplaysPart } from '../features/replays.ts';
import { openRelay } from '../features/relay.ts';
import { judgeClock, retentionSweepPart } from '../features/retention.ts';
import { systemClock, systemIds } from '../system.ts';
import { openEmbeddedReadModels, readModelsPart } from './readModels.ts';
import { openEmbeddedWebhooks } from '../features/webhooks.ts';

/**
 * By the own clock, as there is no other; only servers that share a cluster without a database
 * judge each other by it.
 */
const isOverdue = ({ deadline }: { deadline: string }): boolean =>
  isPastDeadline(deadline, systemClock.now());

/**
 * The log in a data folder; says so where there was none, because a folder that is gone is nothing
 * that anybody else would tell from a first start.
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
      'there was no event log in the data folder: a new one was made, and it is empty',
    );
  return opened;
}

/**
 * The name of the folder's server, made at the first start. The server lock sees to it that only
 * one process has it. Errors: `configuration_invalid` when it can't be read or written.
 */
function readOrCreateInstanceId(folder: string): string {
  const file = join(folder, 'instance-id');
  try {
    const known = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
    if (known !== '') return known;
    const made = systemIds.uuid();
    writeFileSync(file, `${made}\n`, { mode: 0o600 });
    return made;
  } catch (error) {
    throw dataFolderError(folder, error);
  }
}

const TROUBLE_POLL_MS = 1_000;

/**
 * Tells in the log what trouble a store is in, once, and when it is over: for one that has no voice
 * of its own.
 */
function logStoreTrouble(store: Pick<EventStore, 'trouble'>, logger: Logger): PeriodicTask {
  let told: string | undefined;
  const look = (): void => {
    const trouble = store.trouble();
    if (trouble === told) return;
    told = trouble;
    if (trouble === undefined) logger.info('the event log can be used again');
    else logger.warn(trouble);
  };
  const timer = setInterval(look, TROUBLE_POLL_MS).unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
    },
  };
}

/**
 * The service in one process, with its read models in the data folder, and its log there or in a
 * cluster.
 * Errors: `data_folder_in_use`, `store_unavailable`, `configuration_invalid` (the models file, the
 * data folder).
 */
export async function openEmbedded(
  opening: Opening,
  place: EmbeddedLocation,
): Promise<OpenedParts> {
  const { logger, opened } = opening;
  const { dataFolder, log } = place;
  createDataFolder(dataFolder);
  opened.adopt(acquireServerLock(dataFolder), (lock) => lock.release());
  const { store, keyStore } = await ('folder' in log
    ? openFolderLog(opening, place, log)
    : openProtectedStore(opening, place));
  const prover = await openThreadProver(opening.config, place, store);
  const models = await openEmbeddedReadModels(opening, place, prover.threadData);
  const { projector, readModels } = models;
  const id = readOrCreateInstanceId(dataFolder);
  // The lock leaves nobody else to run a turn of this folder's log, under whatever name it began. A
  // cluster may have other servers.
  const isGone = (owner: string): boolean => 'folder' in log || owner === id;
  const damaged = createDamageReporter(logger);
  const storage = {
    store: guardAppends(store, projector.logChanged),
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
  const watch = 'folder' in log ? [{ upkeep: () => logStoreTrouble(store, logger) }] : [];
  const readModelsParts = [readModelsPart(projector, api, models.queries)];
  const feed = openFeed(opening, store);
  const parts = [
    store,
    ...readModelsParts,
    runsPart(api),
    turnWatchPart(api),
    damagedStreamsPart(damaged),
    prover.part,
    feed.part,
  ];
  const { VISIBILITY_WAIT_MS: visibilityWaitMs } = opening.config;
  const judge = judgeClock(store, { now: systemClock.now, newest: store.head });
  const erasures = [
    erasureNoticePart(api),
    restoredKeysPart(api, keyStore),
    unfinishedErasuresPart({ ...api, judge }, { api, alone: true, visibilityWaitMs }),
    retentionSweepPart(api, {
      judge,
      alone: (work) => work(new AbortController().signal).then(() => true),
      onErased: (erased) => evictErased(api, erased),
    }),
  ];
  const webhooks = openEmbeddedWebhooks(
    opening,
    { ...api, ...feed.served, readModelsParts },
    place,
  );
  const read = { tiles: prover.tiles, ...feed.served, webhooks: webhooks.served };
  const last = [webhooks.part, embeddedReplaysPart(api, readModelsParts), ...watch, ...relay];
  return { api: { ...api, judge, ...read }, dataFolder, parts: [...parts, ...erasures, ...last] };
}
