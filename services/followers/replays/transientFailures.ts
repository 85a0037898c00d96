import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isLogUnavailable, isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';

/** Codes of overload, which never count as a failure of the replay, however often they occur. */
const BUSY_CODES: readonly string[] = [
  'model_overloaded',
  'overloaded',
  'rate_limited',
  'session_busy',
  'storage_full',
];

/** Returns true for failures that end by waiting, however long it takes. */
export const isTransientFailure = (error: unknown): boolean =>
  isLogUnavailable(error) || (isTurnlogError(error) && BUSY_CODES.includes(error.code));

/** The pauses between attempts of a replay. */
export function createReplayBackoff() {
  const { firstPauseMs: firstMs, longestPauseMs: longestMs } = LIMITS.replays;
  return createBackoff({ firstMs, longestMs, spread: [0.5, 1] });
}

/**
 * Retries the work after transient failures until it succeeds; throws all other failures, and the abort
 * reason of the signal.
 */
export type RetryTransient = <Result>(work: () => Promise<Result>) => Promise<Result>;

export const createTransientRetry =
  (logger: Pick<Logger, 'warn'>, signal: AbortSignal): RetryTransient =>
  async (work) => {
    const pauses = createReplayBackoff();
    for (let first = true; ; first = false) {
      signal.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        if (!isTransientFailure(error)) throw error;
        if (first)
          logger.warn(errorSummary(error), 'a replay waits until a transient failure has passed');
      }
      await sleep(pauses.next(), signal);
    }
  };
