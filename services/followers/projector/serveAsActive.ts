import type { Position } from '../../../shared/ports/eventStore.ts';
import type { ActiveProjectionStore, ProjectorLag } from '../../../shared/ports/readModels.ts';
import { healingOf, healReadModels, type Healing } from './heal.ts';
import { startIndexer } from './indexTurns.ts';
import type { AppliedBatch, Projection } from './projection.ts';
import { runProjection } from './run.ts';
import type { ProjectorReport } from './status.ts';
import { watchForStall, type StallWatch } from './stallWatch.ts';

export type ProjectorState = 'standing_by' | 'active';

/** What a projector works with whose turn it may be. */
export interface Standing extends Omit<Projection, 'store'>, Pick<Healing, 'openRebuild'> {
  /** Waits until this process is the one that projects; undefined when the signal aborted first. */
  becomeActive: (signal: AbortSignal) => Promise<ActiveProjectionStore | undefined>;
  onState: (state: ProjectorState) => void;
  report: (report: ProjectorReport) => void;
  /** How far that is. */
  onHealingProgress: Healing['onProgress'];
  /** Told each second where the log ends, as far as that is known. */
  onEnd: (end: Position | undefined) => void;
  /** How far it is behind the log; undefined while it doesn't know. */
  currentLag: () => ProjectorLag | undefined;
  /** Opens what is indexed; without it nothing is. */
  keys?: Parameters<typeof startIndexer>[0]['keys'] | undefined;
}

/**
 * Returns a function that writes, for the other processes, how far this projector is: unless that is
 * unknown, or the write before is still under way.
 */
function createHeartbeat(
  store: Pick<ActiveProjectionStore, 'beat'>,
  lag: () => ProjectorLag | undefined,
): () => void {
  let writing: Promise<void> | undefined;
  return () => {
    const current = lag();
    if (current === undefined) return;
    // The next heartbeat follows a failed one; a lost session aborts `lost`.
    writing ??= store
      .beat(current)
      .catch(() => undefined)
      .finally(() => {
        writing = undefined;
      });
  };
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
  const { log, logger, openRebuild, report, onHealingProgress } = standing;
  const refused = await store.refused();
  if (refused === undefined) return;
  report({ type: 'healing', reason: healingOf(refused) });
  await healReadModels(store, { log, logger, openRebuild, onProgress: onHealingProgress, signal });
  if (!signal.aborted) report({ type: 'healing', reason: undefined });
}

/**
 * Projects until another projector is the active one, or the checkpoint turns out to be none and is
 * given up.
 */
async function projectOn(
  { store, applied }: StallWatch,
  standing: Standing,
  signal: AbortSignal,
): Promise<void> {
  const { onProgress, lag, onLogChanged, saidOfLog, logger, log } = standing;
  const complete = completion(store, logger);
  const restored = await runProjection({
    log,
    store,
    logger,
    signal,
    saidOfLog,
    ...(lag && { lag }),
    async onLogChanged(reason) {
      await store.noteLogChanged(reason);
      await onLogChanged?.(reason);
    },
    onProgress(batch) {
      applied(batch.position);
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

/**
 * Resolves with half a sentence on why it has stood still and given up its place; undefined where
 * it has lost it, or the signal aborted.
 */
export async function serveAsActive(
  store: ActiveProjectionStore,
  standing: Standing,
): Promise<string | undefined> {
  await using opened = new AsyncDisposableStack();
  const stalled = new AbortController();
  let why: string | undefined;
  const beat = createHeartbeat(store, standing.currentLag);
  const watch = opened.use(
    watchForStall({
      log: standing.log,
      store,
      onLook(end) {
        standing.onEnd(end);
        beat();
      },
      onStall(reason) {
        why = reason;
        stalled.abort();
        // At once, whatever the work at hand still waits for.
        void store.close();
      },
    }),
  );
  const { keys, logger, report } = standing;
  const onTrouble = (reason: string | undefined): void => report({ type: 'index_trouble', reason });
  const indexer = keys && opened.use(startIndexer({ store, keys, logger, onTrouble }));
  const watched: Standing = {
    ...standing,
    log: watch.log,
    onProgress(batch) {
      standing.onProgress(batch);
      if (batch.caughtUp) indexer?.news();
    },
    async onLogChanged(reason) {
      await standing.onLogChanged?.(reason);
      if (reason === undefined) return;
      why = 'this log is not the one that the read models were built from';
      stalled.abort();
    },
  };
  const signal = AbortSignal.any([standing.signal, store.lost, stalled.signal]);
  while (!signal.aborted) {
    watch.expect('answers');
    await healIfNeeded(store, standing, signal);
    watch.expect('batches');
    await projectOn(watch, watched, signal);
  }
  return standing.signal.aborted ? undefined : why;
}
