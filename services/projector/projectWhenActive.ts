import { pauseAtMost } from '../../shared/pause.ts';
import type { ActiveProjectionStore } from '../../shared/ports/readModels.ts';
import { healingOf, healReadModels, type Healing } from './heal.ts';
import type { AppliedBatch, Projection } from './projection.ts';
import { runProjection } from './run.ts';

const PAUSE_MS = 500;

export type ProjectorState = 'standing_by' | 'active';

interface Standing extends Omit<Projection, 'store'>, Pick<Healing, 'openRebuild'> {
  /** Waits until this process is the one that projects; undefined when the signal aborted first. */
  becomeActive: (signal: AbortSignal) => Promise<ActiveProjectionStore | undefined>;
  onState: (state: ProjectorState) => void;
  /**
   * Told one sentence on why the read models are rebuilt, which can't be trusted; undefined once
   * they can.
   */
  onHealing: (reason: string | undefined) => void;
  /** How far that is. */
  onHealingProgress: Healing['onProgress'];
}

/**
 * Says, once, that the read models have caught up; tries again with the next batch where that
 * failed.
 */
function completion(
  store: ActiveProjectionStore,
  logger: Projection['logger'],
): (batch: AppliedBatch) => void {
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

/**
 * Rebuilds the read models if their checkpoint was given up, by this projector or by one that has
 * ended since.
 */
async function healIfNeeded(
  store: ActiveProjectionStore,
  standing: Standing,
  signal: AbortSignal,
): Promise<void> {
  const { log, logger, openRebuild, onHealing, onHealingProgress } = standing;
  const refused = await store.refused();
  if (refused === undefined) return;
  onHealing(healingOf(refused));
  await healReadModels(store, { log, logger, openRebuild, onProgress: onHealingProgress, signal });
  if (!signal.aborted) onHealing(undefined);
}

/**
 * Projects until another projector is the active one, or the checkpoint turns out to be none and is
 * given up.
 */
async function projectOn(
  store: ActiveProjectionStore,
  standing: Standing,
  signal: AbortSignal,
): Promise<void> {
  const { onProgress, onReading, onLogChanged, logger, log } = standing;
  const complete = completion(store, logger);
  const restored = await runProjection({
    log,
    store,
    logger,
    signal,
    ...(onReading && { onReading }),
    async onLogChanged(reason) {
      await onLogChanged?.(reason);
      await store.noteLogChanged(reason);
    },
    onProgress(batch) {
      onProgress(batch);
      complete(batch);
    },
  });
  if (!restored) return;
  logger.warn(
    restored.checkpoint,
    `The read models are built anew from the log. ${restored.reason}`,
  );
  await store.giveUp(restored.checkpoint);
}

async function serveAsActive(store: ActiveProjectionStore, standing: Standing): Promise<void> {
  await using opened = new AsyncDisposableStack();
  opened.adopt(store, (active) => active.close());
  const signal = AbortSignal.any([standing.signal, store.lost]);
  while (!signal.aborted) {
    await healIfNeeded(store, standing, signal);
    await projectOn(store, standing, signal);
  }
}

/**
 * Projects whenever this process is the active projector, and stands by when it is not, until the
 * signal aborts. A projector that loses its place goes back to standing by; it never ends by
 * itself.
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
      await serveAsActive(store, standing);
      if (!signal.aborted) logger.warn({}, 'This projector has lost its place and stands by');
    } catch (error) {
      logger.warn(
        { err: error, retry_in_ms: PAUSE_MS },
        'This projector could not become active and tries again',
      );
      await pauseAtMost(PAUSE_MS, { signal });
    }
  }
}
