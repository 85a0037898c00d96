import { setTimeout as sleep } from 'node:timers/promises';
import type { ActiveProjectionStore } from '../../shared/ports/readModels.ts';
import { runProjection, type AppliedBatch, type Projection } from './runProjection.ts';

const PAUSE_MS = 500;

export type ProjectorState = 'standing_by' | 'active';

interface Standing extends Omit<Projection, 'store'> {
  /** Waits until this process is the one that projects; undefined when the signal aborted first. */
  becomeActive: (signal: AbortSignal) => Promise<ActiveProjectionStore | undefined>;
  onState: (state: ProjectorState) => void;
}

/** Says, once, that the read models have caught up; tries again with the next batch where that failed. */
function completion(store: ActiveProjectionStore, logger: Projection['logger']): (batch: AppliedBatch) => void {
  let said = false;
  return ({ caughtUp }) => {
    if (said || !caughtUp) return;
    said = true;
    store.complete().catch((error: unknown) => {
      said = false;
      logger.warn({ err: error }, 'That the read models are complete could not be recorded');
    });
  };
}

async function projectOn(store: ActiveProjectionStore, { onProgress, signal, logger, log }: Standing): Promise<void> {
  const complete = completion(store, logger);
  try {
    await runProjection({
      log,
      store,
      logger,
      signal: AbortSignal.any([signal, store.lost]),
      onProgress(batch) {
        onProgress(batch);
        complete(batch);
      },
    });
  } finally {
    await store.close();
  }
}

/**
 * Projects whenever this process is the active projector, and stands by when it is not, until the signal aborts. A projector
 * that loses its place goes back to standing by; it never ends by itself.
 */
export async function projectWhenActive(standing: Standing): Promise<void> {
  const { becomeActive, onState, signal, logger } = standing;
  while (!signal.aborted) {
    onState('standing_by');
    try {
      const store = await becomeActive(signal);
      if (!store) return;
      onState('active');
      logger.info({}, 'This projector is the active one');
      await projectOn(store, standing);
      if (!signal.aborted) logger.warn({}, 'This projector has lost its place and stands by');
    } catch (error) {
      logger.warn({ err: error, retry_in_ms: PAUSE_MS }, 'This projector could not become active and tries again');
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
