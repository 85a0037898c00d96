import type { ProjectionStore } from '../../../shared/ports/readModels.ts';
import type { ProjectionProgress } from '../../../shared/projections/progress.ts';
import { startIndexer } from './indexTurns.ts';
import type { RestoredLog } from './logChanges.ts';
import type { AppliedBatch, Projection } from './projection.ts';
import type { ProjectorReport } from './status.ts';
import { runProjection } from './run.ts';

/**
 * How often the projector checks whether a rebuild has published a generation: one `readdir` each time.
 */
const POLL_MS = 500;

/** The existing generations of the read models, in ascending order. */
interface Generations {
  /**
   * Opens the current generation, or creates one when none is numbered `atLeast` or higher.
   */
  open(atLeast: number): Promise<ProjectionStore & { generation: number }>;
  /** The highest completed generation. */
  current(): number | undefined;
  /** Deletes all earlier generations. */
  retireBefore(generation: number): void;
}

/** A batch that was applied to one of the generations. */
export interface GenerationBatch extends AppliedBatch, ProjectionProgress {}

interface GenerationsOptions extends Pick<Projection, 'log' | 'signal' | 'gathering' | 'logger'> {
  generations: Generations;
  indexGathering?: Parameters<typeof startIndexer>[0]['gathering'];
  hasSpace?: Parameters<typeof startIndexer>[0]['hasSpace'];
  onProgress: (batch: GenerationBatch) => void;
  /** A rebuilt generation counts as healed once it has caught up. */
  report: (report: ProjectorReport) => void;
  /** Decrypts the texts to index; without it no turn is indexed. */
  keys?: Parameters<typeof startIndexer>[0]['keys'];
}

/** The next generation to follow. */
interface GenerationTarget {
  atLeast: number;
  /** Why it replaces the generation before. */
  heals: RestoredLog | undefined;
}

/** Returns a function that completes the generation when it has caught up for the first time. */
function completion(
  { generations, logger }: GenerationsOptions,
  { heals }: GenerationTarget,
  generation: number,
): () => void {
  let complete = false;
  return () => {
    if (complete) return;
    // Until this generation is complete, queries are answered from the previous one.
    complete = true;
    generations.retireBefore(generation);
    if (heals)
      logger.info(
        { generation, refused: heals.checkpoint.position },
        'The read models were rebuilt from the log and can be trusted again',
      );
  };
}

/**
 * Runs the projection on one generation until the signal aborts, the generation is replaced, or it
 * can no longer be trusted. Returns the generation to follow next.
 */
async function followOne(
  options: GenerationsOptions,
  target: GenerationTarget,
): Promise<GenerationTarget> {
  const { generations, onProgress, report, keys, logger, log, signal, gathering } = options;
  await using resources = new AsyncDisposableStack();
  const store = resources.adopt(await generations.open(target.atLeast), (live) => live.close());
  const { generation } = store;
  const replaced = new AbortController();
  const poll = setInterval(() => {
    if (generations.current() === generation) return;
    logger.info(
      { generation },
      'The read models were replaced; the projector switches to the new generation',
    );
    replaced.abort();
  }, POLL_MS);
  resources.defer(() => clearInterval(poll));
  const onTrouble = (reason: string | undefined): void => report({ type: 'index_trouble', reason });
  const { indexGathering, hasSpace } = options;
  const indexing = { store, logger, onTrouble, gathering: indexGathering, hasSpace };
  const indexer = keys && resources.use(startIndexer({ ...indexing, keys }));
  const complete = completion(options, target, generation);
  const heals = target.heals !== undefined;
  const restored = await runProjection({
    log,
    store,
    logger,
    signal: AbortSignal.any([signal, replaced.signal]),
    onLogChanged: (reason) => report({ type: 'log_changed', reason }),
    onTrouble: (reason) => report({ type: 'trouble', reason }),
    ...(gathering && { gathering }),
    onProgress(batch) {
      onProgress({ ...batch, generation, heals });
      if (batch.caughtUp) complete();
      indexer?.onApplied(batch.caughtUp);
    },
  });
  return { atLeast: generation + 1, heals: restored };
}

/**
 * Runs the projection on the current generation of the read models until the signal aborts. Switches
 * to the next generation when a rebuild publishes it, and begins a new one when the files were deleted
 * or the log was restored. The new generation exists from then on, so a process that dies in between
 * leaves nothing behind that trusts the old one.
 */
export async function followGenerations(options: GenerationsOptions): Promise<void> {
  const { logger, report, signal } = options;
  let target: GenerationTarget = { atLeast: 1, heals: undefined };
  while (!signal.aborted) {
    target = await followOne(options, target);
    if (!target.heals) continue;
    const { checkpoint, reason } = target.heals;
    logger.warn(
      { checkpoint: checkpoint.position, generation: target.atLeast },
      `The read models are being rebuilt from the log. ${reason}`,
    );
    report({ type: 'healing', reason });
  }
}
