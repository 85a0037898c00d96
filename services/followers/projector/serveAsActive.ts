import type { Position } from '../../../shared/ports/eventStore.ts';
import type { ActiveProjectionStore, ProjectorLag } from '../../../shared/ports/readModels.ts';
import { healingReason, healReadModels, type HealingOptions } from './heal.ts';
import { startIndexer } from './indexTurns.ts';
import type { AppliedBatch, Projection } from './projection.ts';
import { runProjection } from './run.ts';
import { watchForStalls, type StallWatch } from './stallWatch.ts';
import type { ProjectorReport } from './status.ts';

export type ProjectorState = 'standing_by' | 'active';

/** A projector that may become the active one of several. */
export interface ActiveProjector
  extends Omit<Projection, 'store'>, Pick<HealingOptions, 'openRebuild'> {
  /** Waits until this process projects; resolves with undefined when the signal aborted first. */
  acquireLeadership: (signal: AbortSignal) => Promise<ActiveProjectionStore | undefined>;
  onState: (state: ProjectorState) => void;
  report: (report: ProjectorReport) => void;
  onHealingProgress: HealingOptions['onProgress'];
  /** Called each second with the end of the log, if known. */
  onEnd: (end: Position | undefined) => void;
  /** How far the projector is behind the log; undefined while it is unknown. */
  currentLag: () => ProjectorLag | undefined;
  /** Decrypts the texts to index; without it no turn is indexed. */
  keys?: Parameters<typeof startIndexer>[0]['keys'] | undefined;
}

/**
 * Returns a function that stores the lag of this projector for other processes. It does nothing while
 * the lag is unknown or the previous write is in flight.
 */
function createHeartbeat(
  store: Pick<ActiveProjectionStore, 'beat'>,
  lag: () => ProjectorLag | undefined,
): () => void {
  let writing: Promise<void> | undefined;
  return () => {
    const current = lag();
    if (current === undefined) return;
    // A failed write is superseded by the next heartbeat; a lost session aborts `lost`.
    writing ??= store
      .beat(current)
      .catch(() => undefined)
      .finally(() => {
        writing = undefined;
      });
  };
}

/** Marks the read models as complete when they have caught up; after a failure, with the next batch. */
function completeWhenCaughtUp(
  store: ActiveProjectionStore,
  logger: Projection['logger'],
): (batch: AppliedBatch) => void {
  let isComplete = false;
  return ({ caughtUp }) => {
    if (isComplete || !caughtUp) return;
    isComplete = true;
    store.complete().catch((error: unknown) => {
      isComplete = false;
      logger.warn({ err: error }, 'The completion of the read models could not be recorded');
    });
  };
}

/** Rebuilds the read models if this projector or an earlier one has abandoned their checkpoint. */
async function healIfNeeded(
  store: ActiveProjectionStore,
  { log, logger, openRebuild, report, onHealingProgress }: ActiveProjector,
  signal: AbortSignal,
): Promise<void> {
  const refused = await store.refused();
  if (refused === undefined) return;
  report({ type: 'healing', reason: healingReason(refused) });
  await healReadModels(store, { log, logger, openRebuild, onProgress: onHealingProgress, signal });
  if (!signal.aborted) report({ type: 'healing', reason: undefined });
}

/** Projects until the signal aborts or the log was restored, and then abandons the checkpoint. */
async function projectUntilRestored(
  { store, onApplied }: StallWatch,
  { onProgress, lag, onLogChanged, reportedReason, logger, log }: ActiveProjector,
  signal: AbortSignal,
): Promise<void> {
  const complete = completeWhenCaughtUp(store, logger);
  const restored = await runProjection({
    log,
    store,
    logger,
    signal,
    reportedReason,
    ...(lag && { lag }),
    async onLogChanged(reason) {
      await store.noteLogChanged(reason);
      await onLogChanged?.(reason);
    },
    onProgress(batch) {
      onApplied(batch.position);
      onProgress(batch);
      complete(batch);
    },
  });
  if (!restored) return;
  logger.warn(
    restored.checkpoint,
    `The read models are being rebuilt from the log. ${restored.reason}`,
  );
  await store.giveUp(restored.checkpoint);
}

/**
 * Works as the active projector. Resolves with half a sentence on why it gives up leadership, or with
 * undefined when it has lost leadership or the signal aborted.
 */
export async function serveAsActive(
  store: ActiveProjectionStore,
  projector: ActiveProjector,
): Promise<string | undefined> {
  await using resources = new AsyncDisposableStack();
  const stopped = new AbortController();
  let yieldReason: string | undefined;
  const writeHeartbeat = createHeartbeat(store, projector.currentLag);
  const watch = resources.use(
    watchForStalls({
      log: projector.log,
      store,
      onPoll(end) {
        projector.onEnd(end);
        writeHeartbeat();
      },
      onStall(reason) {
        yieldReason = reason;
        stopped.abort();
        // Without waiting for the batch in progress.
        void store.close();
      },
    }),
  );
  const { keys, logger, report } = projector;
  const onTrouble = (reason: string | undefined): void => report({ type: 'index_trouble', reason });
  const indexer = keys && resources.use(startIndexer({ store, keys, logger, onTrouble }));
  const watched: ActiveProjector = {
    ...projector,
    log: watch.log,
    onProgress(batch) {
      projector.onProgress(batch);
      indexer?.onApplied(batch.caughtUp);
    },
    async onLogChanged(reason) {
      await projector.onLogChanged?.(reason);
      if (reason === undefined) return;
      yieldReason = 'this log is not the one that the read models were built from';
      stopped.abort();
    },
  };
  const signal = AbortSignal.any([projector.signal, store.lost, stopped.signal]);
  while (!signal.aborted) {
    watch.expect('answers');
    await healIfNeeded(store, projector, signal);
    watch.expect('batches');
    await projectUntilRestored(watch, watched, signal);
  }
  return projector.signal.aborted ? undefined : yieldReason;
}
