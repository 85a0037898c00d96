import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import { createPositionWaiters } from '../../../shared/projections/positionWaiters.ts';
import type { ProgressSource, ProjectionProgress } from '../../../shared/projections/progress.ts';
import { openGenerationReader, type GenerationReader } from './generationReader.ts';

/**
 * Follows the projector from generation to generation, with a connection of the calling thread.
 * Queries wait for no one: they take microseconds, and a writer never blocks a reader of a WAL
 * database.
 */
export function createFollower(folder: string, progress: ProgressSource) {
  const waiters = createPositionWaiters();
  let reader: GenerationReader | undefined;
  let latest: ProjectionProgress | undefined;
  /**
   * Sticky: after a fall-back the rows are old but whole, and `untilShown` tells who needs newer
   * ones.
   */
  let complete = false;

  /**
   * Goes over to the generation that the progress speaks of, unless that would show less than was
   * shown. One that has caught up shows the log as it is: it is taken whoever made it and why,
   * because nobody brings the one before up to date any more. What a generation that can't be
   * trusted has shown does not count, but it still answers until the one that takes its place has
   * caught up.
   */
  function follow({ generation, position, caughtUp, heals }: ProjectionProgress): boolean {
    if (reader?.generation === generation) return true;
    if (heals) waiters.reset();
    const shown = waiters.shown();
    const showsLess = shown === undefined ? complete : (position ?? '') < shown;
    if (showsLess && !caughtUp) return false;
    const next = openGenerationReader(folder, generation);
    reader?.close();
    reader = next;
    // Nothing that the generation before has shown is known to be in this one.
    waiters.reset();
    return true;
  }

  const unsubscribe = progress.subscribe((news) => {
    latest = news;
    try {
      if (!follow(news)) return;
    } catch {
      // The file is not there for us now; the connection before it still answers, and the next
      // progress tries again.
      return;
    }
    complete ||= news.caughtUp;
    if (news.position !== undefined) waiters.show(news.position);
  });

  return {
    /**
     * What queries are answered from. Errors: `store_unavailable` until the projector has once been
     * caught up.
     */
    current(): GenerationReader {
      if (!complete || !reader)
        throw storeUnavailableError(
          `The read models are being rebuilt: ${Math.floor(latest?.percent ?? 0)} %`,
        );
      return reader;
    },
    untilShown: waiters.untilShown,
    close(): void {
      unsubscribe();
      waiters.close();
      reader?.close();
    },
  };
}

export type Follower = ReturnType<typeof createFollower>;
