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

/** The generations of the read models that exist, numbered upwards. */
export interface Generations {
  /**
   * Opens the current one; creates one, numbered `atLeast` or higher, when there is none that high.
   */
  open(atLeast: number): Promise<ProjectionStore & { generation: number }>;
  /** The highest finished one. */
  current(): number | undefined;
  /** Deletes the ones before. */
  retireBefore(generation: number): void;
}

/** A batch that was applied to one of the generations. */
export interface GenerationBatch extends AppliedBatch, ProjectionProgress {}

interface GenerationsOptions extends Pick<Projection, 'log' | 'signal' | 'gatherMs' | 'logger'> {
  generations: Generations;
  onProgress: (batch: GenerationBatch) => void;
  /** A generation that is rebuilt is healed once it has caught up. */
  report: (report: ProjectorReport) => void;
  /** Opens what is indexed; without it nothing is. */
  keys?: Parameters<typeof startIndexer>[0]['keys'];
}

/** The next generation to follow. */
interface Course {
  atLeast: number;
  /** Why it replaces the generation before. */
  heals: RestoredLog | undefined;
}

/** Completes the generation when it has caught up for the first time. */
function completion(
  { generations, logger }: GenerationsOptions,
  { heals }: Course,
  generation: number,
): () => void {
  let complete = false;
  return () => {
    if (complete) return;
    // Only now: until this generation is complete, the one before it is what queries are answered
    // from.
    complete = true;
    generations.retireBefore(generation);
    if (heals)
      logger.info(
        { generation, refused: heals.checkpoint.position },
        'The read models are healed: they were built anew from the log',
      );
  };
}

/**
 * Runs the projection on one generation until the signal aborts, or it is replaced or not to be
 * trusted.
 */
async function followOne(options: GenerationsOptions, course: Course): Promise<Course> {
  const { generations, onProgress, report, keys, logger, log, signal, gatherMs } = options;
  await using opened = new AsyncDisposableStack();
  const store = opened.adopt(await generations.open(course.atLeast), (live) => live.close());
  const { generation } = store;
  const replaced = new AbortController();
  const poll = setInterval(() => {
    if (generations.current() === generation) return;
    logger.info(
      { generation },
      'The read models were replaced; the projector goes over to their new copy',
    );
    replaced.abort();
  }, POLL_MS);
  opened.defer(() => clearInterval(poll));
  const onTrouble = (reason: string | undefined): void => report({ type: 'index_trouble', reason });
  const indexer = keys && opened.use(startIndexer({ store, keys, logger, onTrouble }));
  const complete = completion(options, course, generation);
  const heals = course.heals !== undefined;
  const restored = await runProjection({
    log,
    store,
    logger,
    signal: AbortSignal.any([signal, replaced.signal]),
    onLogChanged: (reason) => report({ type: 'log_changed', reason }),
    onTrouble: (reason) => report({ type: 'trouble', reason }),
    ...(gatherMs !== undefined && { gatherMs }),
    onProgress(batch) {
      onProgress({ ...batch, generation, heals });
      if (!batch.caughtUp) return;
      complete();
      indexer?.onCaughtUp();
    },
  });
  return { atLeast: generation + 1, heals: restored };
}

/**
 * Runs the projection on the current generation of the read models, and goes over to the next one
 * when a rebuild publishes it, and begins a new one when the files were deleted or the log was
 * restored. The next one is there from then on, so that a process that dies meanwhile
 * leaves nothing that trusts the old one. Ends when the signal aborts.
 * Errors: those of `generations.open`.
 */
export async function followGenerations(options: GenerationsOptions): Promise<void> {
  const { logger, report, signal } = options;
  let course: Course = { atLeast: 1, heals: undefined };
  while (!signal.aborted) {
    course = await followOne(options, course);
    if (!course.heals) continue;
    const { checkpoint, reason } = course.heals;
    logger.warn(
      { checkpoint: checkpoint.position, generation: course.atLeast },
      `The read models are built anew from the log. ${reason}`,
    );
    report({ type: 'healing', reason });
  }
}
