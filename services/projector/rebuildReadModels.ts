import type { EventLog } from '../../shared/ports/eventStore.ts';
import { storeUnavailable } from '../../shared/errors.ts';
import type { RebuildStore } from '../../shared/ports/readModels.ts';
import { runProjection, type AppliedBatch, type ProjectorLogger } from './runProjection.ts';

export interface RebuildProgress {
  /** Applied by this call; what an interrupted rebuild had done before is not counted. */
  events: number;
  events_per_second: number;
  /** Of the whole log, an estimate. */
  percent: number;
  /** Streams parked so far. */
  parked: number;
}

interface Rebuild {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  /** Where the next copy is built. */
  store: RebuildStore;
  signal: AbortSignal;
  onProgress: (progress: RebuildProgress) => void;
  logger: ProjectorLogger;
}

/** Runs the projection until a batch is the last one that is wanted, any number of times. Resolves false when it was stopped before. */
function stepwise({ log, store, signal, onProgress, logger }: Rebuild): (isLast: (batch: AppliedBatch) => boolean) => Promise<boolean> {
  const stopped = AbortSignal.any(store.lost ? [signal, store.lost] : [signal]);
  const begun = performance.now();
  let parked = 0;
  let before = 0;
  return async (isLast) => {
    const reached = new AbortController();
    let applied = 0;
    await runProjection({
      log,
      store,
      logger,
      signal: AbortSignal.any([stopped, reached.signal]),
      onProgress(batch) {
        parked += batch.parked.length;
        applied = batch.events;
        const events = before + applied;
        onProgress({ events, percent: batch.percent, parked, events_per_second: Math.round((1000 * events) / Math.max(1, performance.now() - begun)) });
        if (isLast(batch)) reached.abort();
      },
    });
    before += applied;
    return reached.signal.aborted;
  };
}

/**
 * Builds the read models anew from the log, beside a server or without one, and publishes them when they have caught up.
 * Resolves true then, false when it was interrupted: the next rebuild goes on where this one was.
 * Errors: `store_unavailable` when the copy could not be published.
 */
export async function rebuildReadModels(rebuild: Rebuild): Promise<boolean> {
  const { store, signal } = rebuild;
  const runUntil = stepwise(rebuild);
  if (!(await runUntil(({ caughtUp }) => caughtUp))) {
    await store.close();
    return false;
  }
  try {
    await store.publish(async (goal) => {
      if (!(await runUntil(({ position }) => position !== undefined && position >= goal))) throw storeUnavailable('The rebuild was interrupted.');
    });
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
  return true;
}
