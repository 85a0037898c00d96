import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isLogUnavailable, isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';

/** What says that somebody has too much to do, or is away: however often, it is nobody's failure. */
const BUSY: readonly string[] = ['model_overloaded', 'overloaded', 'rate_limited', 'session_busy'];

/** True for what waiting mends, however long it takes. */
export const isTransientFailure = (error: unknown): boolean =>
  isLogUnavailable(error) || (isTurnlogError(error) && BUSY.includes(error.code));

/** The pauses between attempts of a replay. */
export function createReplayBackoff() {
  const { firstPauseMs: firstMs, longestPauseMs: longestMs } = LIMITS.replays;
  return createBackoff({ firstMs, longestMs, spread: [0.5, 1] });
}

/**
 * Does the work until it succeeds, while only passing trouble keeps it back. Errors: the work's
 * others, the signal's reason.
 */
export async function retryTransient<Result>(
  work: () => Promise<Result>,
  { signal, logger }: { signal: AbortSignal; logger: Pick<Logger, 'warn'> },
): Promise<Result> {
  const pauses = createReplayBackoff();
  for (let first = true; ; first = false) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (!isTransientFailure(error)) throw error;
      if (first) logger.warn(errorSummary(error), 'a replay waits until a trouble has passed');
    }
    await sleep(pauses.next(), signal);
  }
}
