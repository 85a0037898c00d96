import type { ParkedStream } from '../../../shared/ports/readModels.ts';
import type { ProjectionProgress } from '../../../shared/projections/progress.ts';
import type { ProjectorLogger } from './projection.ts';

const PROGRESS_LINE_MS = 1000;
/** Read models that were complete once are behind for a moment after every burst of writes. */
const PATIENCE_MS = 10_000;

type Reported = Pick<ProjectionProgress, 'caughtUp' | 'percent'> &
  Partial<Pick<ProjectionProgress, 'generation'>>;

/**
 * Logs how catching up goes on, at most a line each second, and its end. A generation that was
 * complete once is worth a line only where it stays behind for 10 s.
 */
export function progressLines(logger: ProjectorLogger): (progress: Reported) => void {
  let lastLine = performance.now();
  let begun = false;
  let complete: Reported | undefined;
  return (reported) => {
    const { caughtUp, percent, generation } = reported;
    const now = performance.now();
    if (caughtUp) {
      if (begun) logger.info({ generation }, 'The read models are up to date');
      [begun, complete, lastLine] = [false, reported, now];
      return;
    }
    const wasComplete = complete !== undefined && complete.generation === generation;
    if (now - lastLine < (wasComplete ? PATIENCE_MS : PROGRESS_LINE_MS)) return;
    lastLine = now;
    begun = true;
    logger.info(
      { generation, percent: Math.floor(percent) },
      `The read models are being brought up to date: ${Math.floor(percent)} %`,
    );
  };
}

/** Logs the streams that a batch has parked. */
export function logParked(logger: ProjectorLogger, streams: readonly ParkedStream[]): void {
  for (const parked of streams)
    logger.error(
      parked,
      `The stream ${parked.stream} was parked: an event can't be applied to the read models`,
    );
}

/** Why a projection failed, as half a sentence for people: the cause says more than what it led to. */
export function troubleOf(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
}
