import type { ProjectionStore } from '../../shared/ports/readModels.ts';
import type { ProjectionProgress } from '../../shared/projections/progress.ts';
import { runProjection, type AppliedBatch, type Projection } from './runProjection.ts';

/** How often the projector looks whether a rebuild has finished beside it: a look is one `readdir`. */
const LOOK_MS = 500;

/** The copies of the read models that exist, numbered upwards. */
export interface Generations {
  /** Opens the current one; creates one, numbered `atLeast` or higher, when there is none that high. */
  open(atLeast: number): Promise<ProjectionStore & { generation: number }>;
  /** The highest finished one. */
  current(): number | undefined;
  /** Deletes the ones before. */
  retireBefore(generation: number): void;
}

interface Following extends Omit<Projection, 'store' | 'onProgress'> {
  generations: Generations;
  onProgress: (progress: ProjectionProgress & Pick<AppliedBatch, 'events' | 'parked'>) => void;
}

/** Runs the projection on one copy until the signal aborts or the copy is no longer the current one. Returns its number. */
async function followOne({ generations, onProgress, logger, log, signal }: Following, atLeast: number): Promise<number> {
  const store = await generations.open(atLeast);
  const { generation } = store;
  const replaced = new AbortController();
  const look = setInterval(() => {
    if (generations.current() === generation) return;
    logger.info({ generation }, 'The read models were replaced; the projector goes over to their new copy');
    replaced.abort();
  }, LOOK_MS);
  let retired = false;
  try {
    await runProjection({
      log,
      store,
      logger,
      signal: AbortSignal.any([signal, replaced.signal]),
      onProgress(batch) {
        onProgress({ ...batch, generation });
        if (retired || !batch.caughtUp) return;
        // Only now: until this copy is complete, the one before it is what queries are answered from.
        retired = true;
        generations.retireBefore(generation);
      },
    });
  } finally {
    clearInterval(look);
    await store.close();
  }
  return generation;
}

/**
 * Runs the projection on the current copy of the read models, and goes over to the next one when a rebuild publishes it, or
 * begins a new one when the files were deleted. Ends when the signal aborts. Errors: those of `generations.open`.
 */
export async function followGenerations(following: Following): Promise<void> {
  let atLeast = 1;
  while (!following.signal.aborted) atLeast = (await followOne(following, atLeast)) + 1;
}
