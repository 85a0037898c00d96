import type { ProjectionStore } from '../../../shared/ports/readModels.ts';
import type { ProjectionProgress } from '../../../shared/projections/progress.ts';
import { startIndexer } from './indexTurns.ts';
import type { RestoredLog } from './logChanges.ts';
import type { AppliedBatch, Projection } from './projection.ts';
import { runProjection } from './run.ts';

/**
 * How often the projector looks whether a rebuild has finished beside it: a look is one `readdir`.
 */
const LOOK_MS = 500;

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

interface Following extends Omit<Projection, 'store' | 'onProgress' | 'lag'> {
  generations: Generations;
  onProgress: (batch: GenerationBatch) => void;
  /**
   * Told one sentence on why a generation is rebuilt: the one before can't be trusted. It is
   * healed once it has caught up.
   */
  onHealing: (reason: string) => void;
  /** Opens what is indexed; without it nothing is. */
  keys?: Parameters<typeof startIndexer>[0]['keys'];
  onIndexTrouble?: Parameters<typeof startIndexer>[0]['onTrouble'];
}

/** What is known of a generation when it is opened. */
interface Course {
  atLeast: number;
  /** Why it replaces the generation before. */
  heals: RestoredLog | undefined;
}

/** What is to be done once, when the generation has caught up. */
function completion(
  { generations, logger }: Following,
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
async function followOne(following: Following, course: Course): Promise<Course> {
  const { generations, onProgress, onTrouble, onLogChanged, logger, log, signal, gatherMs } =
    following;
  await using opened = new AsyncDisposableStack();
  const store = opened.adopt(await generations.open(course.atLeast), (live) => live.close());
  const { generation } = store;
  const replaced = new AbortController();
  const look = setInterval(() => {
    if (generations.current() === generation) return;
    logger.info(
      { generation },
      'The read models were replaced; the projector goes over to their new copy',
    );
    replaced.abort();
  }, LOOK_MS);
  opened.defer(() => clearInterval(look));
  const { keys, onIndexTrouble: indexTrouble } = following;
  const indexer =
    keys &&
    opened.use(
      startIndexer({ store, keys, logger, ...(indexTrouble && { onTrouble: indexTrouble }) }),
    );
  const complete = completion(following, course, generation);
  const heals = course.heals !== undefined;
  const restored = await runProjection({
    log,
    store,
    logger,
    signal: AbortSignal.any([signal, replaced.signal]),
    onLogChanged,
    ...(onTrouble && { onTrouble }),
    ...(gatherMs !== undefined && { gatherMs }),
    onProgress(batch) {
      onProgress({ ...batch, generation, heals });
      if (!batch.caughtUp) return;
      complete();
      indexer?.news();
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
export async function followGenerations(following: Following): Promise<void> {
  const { logger, onHealing, signal } = following;
  let course: Course = { atLeast: 1, heals: undefined };
  while (!signal.aborted) {
    course = await followOne(following, course);
    if (!course.heals) continue;
    const { checkpoint, reason } = course.heals;
    logger.warn(
      { checkpoint: checkpoint.position, generation: course.atLeast },
      `The read models are built anew from the log. ${reason}`,
    );
    onHealing(reason);
  }
}
