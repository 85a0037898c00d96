import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Attempt } from './attempt.ts';
import type { Relay } from './relay.ts';

const PAUSES = { firstMs: 100, longestMs: 5000 };
/** For failures that need an operator. */
const OPERATOR_PAUSES = { firstMs: 5000, longestMs: 60_000 };
/** Take-overs without progress that transient failures may cost, however short the take-over time is. */
const QUICK_TRIES = 3;

const OPERATOR_CODES = ['position_invalid', 'log_changed', 'configuration_invalid'] as const;
/** Returns true for failures that only an operator can fix: start position, log, topics, permissions. */
const needsOperator = (error: unknown): boolean =>
  OPERATOR_CODES.some((code) => isTurnlogError(error, code));

type RetryOptions = Pick<Relay, 'logger' | 'lag' | 'takeOverMs'>;

/** Decides how failures are logged and how long the relay pauses after them. */
export function createRetryPolicy({ logger, lag, takeOverMs }: RetryOptions) {
  // Separate schedules: a transient failure after a refusal is retried as soon as any other.
  const transientPauses = createBackoff(PAUSES);
  const operatorPauses = createBackoff(OPERATOR_PAUSES);
  const stepBackPauses = createBackoff({ firstMs: 2 * takeOverMs, longestMs: 16 * takeOverMs });
  let lastLogged: string | undefined;
  /** Consecutive take-overs that made no progress because of transient failures. */
  const fruitlessTakeOvers = { count: 0, since: 0 };

  /** A brief network failure is no reason to step back; repeated ones are. */
  function isRetriedAtOnce(failure: unknown): boolean {
    if (!isTurnlogError(failure) || !failure.retriable) return false;
    if (fruitlessTakeOvers.count === 0) fruitlessTakeOvers.since = performance.now();
    fruitlessTakeOvers.count += 1;
    return (
      fruitlessTakeOvers.count <= QUICK_TRIES ||
      performance.now() - fruitlessTakeOvers.since < takeOverMs / 2
    );
  }

  /** Logs a failure; one that needs an operator is logged once. */
  function logFailure(failure: unknown, retry_in_ms: number): void {
    const operatorReason = needsOperator(failure) ? String(failure) : undefined;
    const message =
      operatorReason === undefined
        ? 'The relay failed and resumes from its checkpoint'
        : 'The relay publishes nothing until an operator changes this';
    if (operatorReason === undefined || operatorReason !== lastLogged)
      logger.warn({ err: failure, retry_in_ms, position: lag.position() }, message);
    lastLogged = operatorReason;
  }

  return {
    /**
     * Logs the failure. Returns the pause in milliseconds, and whether the relay steps back: it has taken
     * over without making progress, so it leaves another relay the time to take over.
     */
    onFailure(
      failure: unknown,
      { tookOver, madeProgress }: Attempt,
    ): { pauseMs: number; stepsBack: boolean } {
      if (madeProgress) {
        for (const backoff of [transientPauses, operatorPauses, stepBackPauses]) backoff.reset();
        fruitlessTakeOvers.count = 0;
        lastLogged = undefined;
      }
      const isSteppingBack = tookOver && !madeProgress && !isRetriedAtOnce(failure);
      const backMs = isSteppingBack ? stepBackPauses.next() : 0;
      const retryMs = needsOperator(failure)
        ? operatorPauses.next()
        : isSteppingBack
          ? 0
          : transientPauses.next();
      const pauseMs = Math.max(retryMs, backMs);
      logFailure(failure, pauseMs);
      return { pauseMs, stepsBack: isSteppingBack };
    },
  };
}
