import type { ParkedStream } from '../../shared/ports/readModels.ts';
import type { ProjectionProgress } from '../../shared/projections/progress.ts';
import type { ProjectorLogger } from './projection.ts';

const PROGRESS_LINE_MS = 1000;

type Reported = Pick<ProjectionProgress, 'caughtUp' | 'percent'> &
  Partial<Pick<ProjectionProgress, 'generation'>>;

/** Logs how catching up goes on, at most a line each second, and its end. */
export function progressLines(logger: ProjectorLogger): (progress: Reported) => void {
  let lastLine = performance.now();
  let begun = false;
  return ({ caughtUp, percent, generation }) => {
    if (caughtUp && begun) logger.info({ generation }, 'The read models are complete');
    if (caughtUp) begun = false;
    if (caughtUp || performance.now() - lastLine < PROGRESS_LINE_MS) return;
    lastLine = performance.now();
    begun = true;
    logger.info(
      { generation, percent: Math.floor(percent) },
      `The read models are being rebuilt: ${Math.floor(percent)} %`,
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
