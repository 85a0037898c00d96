import { setTimeout as sleep } from 'node:timers/promises';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import { isTurnlogError, storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type { RebuildStore } from '../../../shared/ports/readModels.ts';
import type { AppliedBatch, Projection, ProjectorLogger } from './projection.ts';
import { runProjection } from './run.ts';

/**
 * Once caught up, the projection reaches the position of the log's last event, of Turnlog or not,
 * within about a second.
 */
const REACHED_WITHIN_MS = 3_000;

export interface RebuildProgress {
  /** Applied by this call, without those of an earlier, interrupted rebuild. */
  events: number;
  events_per_second: number;
  /** Estimated share of the whole log. */
  percent: number;
  /** Streams parked so far. */
  parked: number;
}

interface Rebuild {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  /** The generation being built. */
  store: RebuildStore;
  signal: AbortSignal;
  onProgress: (progress: RebuildProgress) => void;
  /**
   * Called with the reason when the log is not the log of the interrupted rebuild, which then waits for
   * it. Without this callback the rebuild starts over, because an operator wants the current log.
   */
  onLogChanged?: Projection['onLogChanged'];
  logger: ProjectorLogger;
}

/** The store, and a signal that aborts with `storage_full` once the store has thrown that. */
function watchSpace(store: RebuildStore): { store: RebuildStore; full: AbortSignal } {
  const full = new AbortController();
  return {
    full: full.signal,
    store: {
      ...store,
      apply: (...batch) =>
        store.apply(...batch).catch((error: unknown) => {
          if (isTurnlogError(error, 'storage_full')) full.abort(error);
          throw error;
        }),
    },
  };
}

/**
 * Returns a function that runs the projection until `watch` calls `end`; it can be called repeatedly.
 * Resolves with false when the rebuild was stopped first.
 */
function createStepRunner({
  log,
  store,
  signal,
  onProgress,
  onLogChanged,
  logger,
}: Rebuild): (watch: (batch: AppliedBatch, end: () => void) => void) => Promise<boolean> {
  const stopped = AbortSignal.any(store.lost ? [signal, store.lost] : [signal]);
  const startedAt = performance.now();
  let parked = 0;
  let appliedBefore = 0;
  return async (watch) => {
    const stepEnded = new AbortController();
    while (!stopped.aborted && !stepEnded.signal.aborted) {
      let applied = 0;
      const changed = new AbortController();
      const restored = await runProjection({
        log,
        store,
        logger,
        signal: AbortSignal.any([stopped, stepEnded.signal, changed.signal]),
        onLogChanged:
          onLogChanged ?? ((reason) => void (reason !== undefined && changed.abort(reason))),
        onProgress(batch) {
          parked += batch.parked.length;
          applied = batch.events;
          const events = appliedBefore + applied;
          onProgress({
            events,
            percent: batch.percent,
            parked,
            events_per_second: Math.round(
              (1000 * events) / Math.max(1, performance.now() - startedAt),
            ),
          });
          watch(batch, () => stepEnded.abort());
        },
      });
      appliedBefore += applied;
      if (!restored && !changed.signal.aborted) continue;
      const reason = restored?.reason ?? String(changed.signal.reason);
      logger.warn({}, `The interrupted rebuild of the read models starts over. ${reason}`);
      await store.startOver();
    }
    return stepEnded.signal.aborted;
  };
}

/**
 * Ends at the goal, the checkpoint of another generation. The log may lack that position; then the
 * step ends after the projection has been at the end of the log for long enough.
 */
function endAtGoal(
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
 * Rebuilds the read models from the log, with or without a running server, and publishes them when
 * they have caught up. Resolves with true then, and with false when it was interrupted: the next
 * rebuild resumes there. Throws `store_unavailable` when the generation could not be published, and
 * `storage_full` after it was deleted for lack of space.
 */
export async function rebuildReadModels(rebuild: Rebuild): Promise<boolean> {
  const { store, full } = watchSpace(rebuild.store);
  const signal = AbortSignal.any([rebuild.signal, full]);
  const runUntil = createStepRunner({ ...rebuild, store, signal });
  if (!(await runUntil(({ caughtUp }, end) => caughtUp && end()))) {
    await (full.aborted && store.discard ? store.discard() : store.close());
    full.throwIfAborted();
    return false;
  }
  try {
    await store.publish(async (goal) => {
      if (!(await runUntil(endAtGoal(goal, signal))))
        throw storeUnavailableError('The rebuild was interrupted.');
    });
  } catch (error) {
    full.throwIfAborted();
    if (signal.aborted) return false;
    throw error;
  }
  return true;
}
