import type { ParkedStream } from '../../../shared/ports/readModels.ts';
import type { ProjectionProgress } from '../../../shared/projections/progress.ts';
import type { ProjectorLogger } from './projection.ts';

const PROGRESS_LINE_MS = 1000;
/** Read models that were complete fall behind briefly after every burst of writes. */
const LATE_MS = 10_000;

export type LoggedProgress = Pick<ProjectionProgress, 'caughtUp' | 'percent'> &
  Partial<Pick<ProjectionProgress, 'generation'>> & {
    /** Events applied so far, by any count that only grows. */
    events: number;
  };

type Timed = LoggedProgress & { at: number };

/** The events since the beginning of a catch-up, their rate, and the time left. */
function speedOf(from: Timed, now: Timed): { events: number; per_second: number; left_s?: number } {
  const seconds = (now.at - from.at) / 1_000;
  const events = now.events - from.events;
  const percent = now.percent - from.percent;
  return {
    events,
    per_second: Math.round(events / seconds),
    ...(percent > 0 && { left_s: Math.ceil(((100 - now.percent) * seconds) / percent) }),
  };
}

/**
 * Logs progress while read models catch up, at most once a second, and once when they are up to date:
 * events since the catch-up began, their rate, and an estimate of the time left. A generation that was
 * complete before is logged only after it has been behind for 10 s.
 */
export function progressLogger(logger: ProjectorLogger): (progress: LoggedProgress) => void {
  let lastLine = performance.now();
  let isLogged = false;
  let complete: LoggedProgress | undefined;
  /** The beginning of the catch-up. */
  let from: Timed | undefined;
  return (reported) => {
    const progress = { ...reported, at: performance.now() };
    const { caughtUp, percent, generation, at } = progress;
    if (caughtUp) {
      if (isLogged) logger.info({ generation }, 'The read models are up to date');
      [isLogged, complete, lastLine, from] = [false, progress, at, undefined];
      return;
    }
    // A projector that was started again counts from zero.
    if (!from || from.generation !== generation || from.events > progress.events) from = progress;
    const wasComplete = complete !== undefined && complete.generation === generation;
    if (at - lastLine < (wasComplete ? LATE_MS : PROGRESS_LINE_MS)) return;
    lastLine = at;
    isLogged = true;
    const whole = Math.floor(percent);
    const speed = from === progress ? undefined : speedOf(from, progress);
    const remainingTime = speed?.left_s === undefined ? '' : `, about ${speed.left_s} s left`;
    const detail = speed ? ` (${speed.events} events, ${speed.per_second}/s${remainingTime})` : '';
    logger.info(
      { generation, percent: whole, ...speed },
      `The read models are being brought up to date: ${whole} %${detail}`,
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
