import { setTimeout as sleep } from 'node:timers/promises';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type { RebuildStore } from '../../../shared/ports/readModels.ts';
import type { AppliedBatch, Projection, ProjectorLogger } from './projection.ts';
import { runProjection } from './run.ts';

/**
 * The position of the log's last event, ours or not, is reached within about a second of having
 * caught up.
 */
const REACHED_WITHIN_MS = 3_000;

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
  /** Where the next generation is built. */
  store: RebuildStore;
  signal: AbortSignal;
  onProgress: (progress: RebuildProgress) => void;
  /**
   * Told why the log is not the one of the rebuild that was interrupted, which waits for it then.
   * Without it the rebuild begins anew: whoever asks for one wants the log as it is.
   */
  onLogChanged?: Projection['onLogChanged'];
  logger: ProjectorLogger;
}

/**
 * Runs the projection until told of the last batch that is wanted, any number of times. Resolves
 * false when it was stopped before.
 */
function stepwise({
  log,
  store,
  signal,
  onProgress,
  onLogChanged,
  logger,
}: Rebuild): (watch: (batch: AppliedBatch, end: () => void) => void) => Promise<boolean> {
  const stopped = AbortSignal.any(store.lost ? [signal, store.lost] : [signal]);
  const begun = performance.now();
  let parked = 0;
  let before = 0;
  return async (watch) => {
    const ended = new AbortController();
    while (!stopped.aborted && !ended.signal.aborted) {
      let applied = 0;
      const changed = new AbortController();
      const restored = await runProjection({
        log,
        store,
        logger,
        signal: AbortSignal.any([stopped, ended.signal, changed.signal]),
        onLogChanged:
          onLogChanged ?? ((reason) => void (reason !== undefined && changed.abort(reason))),
        onProgress(batch) {
          parked += batch.parked.length;
          applied = batch.events;
          const events = before + applied;
          onProgress({
            events,
            percent: batch.percent,
            parked,
            events_per_second: Math.round((1000 * events) / Math.max(1, performance.now() - begun)),
          });
          watch(batch, () => ended.abort());
        },
      });
      before += applied;
      if (!restored && !changed.signal.aborted) continue;
      const reason = restored?.reason ?? String(changed.signal.reason);
      logger.warn({}, `The interrupted rebuild of the read models begins anew. ${reason}`);
      await store.startOver();
    }
    return ended.signal.aborted;
  };
}

/**
 * Ends at the goal, which is the checkpoint of another generation and may be one that the log does
 * not know: then the end of the log, looked at for long enough, has to do.
 */
function reaching(
  goal: Position,
  signal: AbortSignal,
): (batch: AppliedBatch, end: () => void) => void {
  let waiting = false;
  return ({ position, caughtUp }, end) => {
    if (position !== undefined && position >= goal) end();
    else if (caughtUp && !waiting) {
      waiting = true;
      void sleep(REACHED_WITHIN_MS, undefined, { signal, ref: false }).then(end, () => undefined);
    }
  };
}

/**
 * Rebuilds the read models from the log, beside a server or without one, and publishes them when
 * they have caught up. Resolves true then, false when it was interrupted: the next rebuild goes on
 * where this one was.
 * Errors: `store_unavailable` when the generation could not be published.
 */
export async function rebuildReadModels(rebuild: Rebuild): Promise<boolean> {
  const { store, signal } = rebuild;
  const runUntil = stepwise(rebuild);
  if (!(await runUntil(({ caughtUp }, end) => caughtUp && end()))) {
    await store.close();
    return false;
  }
  try {
    await store.publish(async (goal) => {
      if (!(await runUntil(reaching(goal, signal))))
        throw storeUnavailableError('The rebuild was interrupted.');
    });
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
  return true;
}
