import { Worker } from 'node:worker_threads';
import { dataFolderError, isFileError } from '../../../infra/sqlite/dataFolder.ts';
import { openSqliteReadModels } from '../../../infra/sqlite/readModels/readModels.ts';
import { waitUntilVisible } from '../../../shared/commandHandling/context.ts';
import type { ProtectedStore } from '../../../shared/eventlog/encryption/protectedStore.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { EventStore, Position } from '../../../shared/ports/eventStore.ts';
import type { StreamSource } from '../../../shared/eventlog/reading/reportDamage.ts';
import { checkedReadModels } from '../../../shared/readModels/integrity/checkedReadModels.ts';
import type { DamagedRows } from '../../../shared/readModels/integrity/damagedRows.ts';
import { waitUntilCaughtUp } from '../../../shared/projections/progress.ts';
import { cacheRowsUntilChange } from '../../../shared/projections/cacheRowsUntilChange.ts';
import { readYourWrites } from '../../../shared/projections/readYourWrites.ts';
import type { RunContext } from '../../../shared/runs/context.ts';
import { interruptOrphanedTurns } from '../../../shared/runs/recovery/interruptTurn.ts';
import {
  changedLogReason,
  distrustReason,
  lateReason,
  searchReason,
} from '../../followers/projector/status.ts';
import {
  startProjectorThread,
  THREAD_LIMITS,
  type ProjectorThread,
} from '../../followers/projector/startThread.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import { rowSamplingPart } from '../../process/upkeep/rowSampling.ts';
import { retryUntilStoreAvailable } from '../../process/startup/retryUntilStoreAvailable.ts';
import type { ThreadData } from '../features/prover.ts';
import { locateReadModels, type EmbeddedLocation } from '../logLocation.ts';
import type { Opening } from '../opening.ts';

/** Starts the projector thread, and opens the read models that it keeps up to date. */
export async function openEmbeddedReadModels(
  { config, logger, memory, opened }: Opening,
  place: EmbeddedLocation,
  threadData: () => ThreadData,
  source: StreamSource & { damagedRows: DamagedRows },
) {
  const spawn = (): Worker => {
    const workerData = threadData();
    return new Worker(new URL('./projectorThread.ts', import.meta.url), {
      workerData,
      name: 'projector',
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
    openSqliteReadModels({ folder: locateReadModels(place), progress }),
    (readers) => readers.close(),
  );
  const checked = checkedReadModels(queries, source, source.damagedRows);
  const readModels = { ...checked, ...cacheRowsUntilChange(checked, progress) };
  const options = {
    waitMs: config.VISIBILITY_WAIT_MS,
    late: () => lateReason(projector) ?? projector.logChanged(),
    shown: queries.shown,
    progress,
    readNewAgent: checked.readNewAgent,
  };
  const sampling = rowSamplingPart({
    readModels: queries,
    source,
    damaged: source.damagedRows,
    memory,
    forget: checked.forget,
  });
  const { forget } = checked;
  return { projector, queries, sampling, forget, readModels: readYourWrites(readModels, options) };
}

/** The store, and the position of the last event that was written through it. */
function withLastPosition(store: ProtectedStore): {
  store: ProtectedStore;
  written: () => Position | undefined;
} {
  let last: Position | undefined;
  const append: EventStore['append'] = async (...given) => {
    const result = await store.append(...given);
    if (last === undefined || result.position > last) last = result.position;
    return result;
  };
  return { store: { ...store, append }, written: () => last };
}

/** Closes the turns that a crash of this instance left open; later queries show them closed. */
async function recoverOpenTurns(context: RunContext, signal: AbortSignal): Promise<void> {
  const open = await context.readModels.listOpenTurns();
  if (open.length === 0) return;
  const { store, written } = withLastPosition(context.store);
  await interruptOrphanedTurns({ ...context, store }, open, signal);
  signal.throwIfAborted();
  const last = written();
  if (last !== undefined) await waitUntilVisible(context, last);
  context.logger.warn(
    { turns: open.length },
    'open turns were found: those left by a crash are marked as interrupted',
  );
}

/** The part of the read models: once they are up to date, it closes turns left open by a crash. */
export function readModelsPart(
  projector: ProjectorThread,
  api: RunContext,
  queries: ReturnType<typeof openSqliteReadModels>,
): ProcessPart {
  const doubt = (): string | undefined => distrustReason(projector.healing());
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
    // Only a start waits for the read models: later, many requests are served without them. On another
    // log, no request that writes is.
    trouble: () =>
      changedLogReason(projector.logChanged()) ?? (prepared ? undefined : lateReason(projector)),
    distrustReason: doubt,
    async prepare(signal) {
      await waitUntilCaughtUp(projector.progress, signal);
      await retryUntilStoreAvailable(() => recoverOpenTurns(api, signal), api.logger, signal);
      prepared = true;
    },
  };
}
