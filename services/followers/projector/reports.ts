import type { ParkedStream } from '../../../shared/ports/readModels.ts';
import type { ProjectionProgress } from '../../../shared/projections/progress.ts';
import type { ProjectorLogger } from './projection.ts';

const PROGRESS_LINE_MS = 1000;
/** Read models that were complete fall behind briefly after every burst of writes. */
const LATE_MS = 10_000;

export type LoggedProgress = Pick<ProjectionProgress, 'caughtUp' | 'percent'> &
  Partial<Pick<ProjectionProgress, 'generation'>>;

/**
 * Logs progress while read models catch up, at most once a second, and once when they are up to date.
 * A generation that was complete before is logged only after it has been behind for 10 s.
 */
export function progressLogger(logger: ProjectorLogger): (progress: LoggedProgress) => void {
  let lastLine = performance.now();
  let isLogged = false;
  let complete: LoggedProgress | undefined;
  return (progress) => {
    const { caughtUp, percent, generation } = progress;
    const now = performance.now();
    if (caughtUp) {
      if (isLogged) logger.info({ generation }, 'The read models are up to date');
      [isLogged, complete, lastLine] = [false, progress, now];
      return;
    }
    const wasComplete = complete !== undefined && complete.generation === generation;
    if (now - lastLine < (wasComplete ? LATE_MS : PROGRESS_LINE_MS)) return;
    lastLine = now;
    isLogged = true;
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

/** Half a sentence on why a projection failed. The cause is more specific than the error. */
export function troubleReason(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
}
