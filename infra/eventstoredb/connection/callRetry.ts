import { addAbortListener } from 'node:events';
import { isTurnlogError, storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import { backoffMs } from '../../../shared/lib/time/backoff.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import { countWait, waitLimitMs } from '../../../shared/lib/time/waitBudget.ts';
import {
  StoreAwayError,
  type ConnectionManager,
  type NodeConnection,
} from './connectionManager.ts';
import { isAccessDenied, isUnauthenticated } from './serverErrors.ts';
import type { RequiredRight } from './troubleLog.ts';

/**
 * A call that is answered at the first attempt and within this time, in milliseconds, does not count
 * as a wait of its request: an export makes thousands of them.
 */
const PROMPT_ANSWER_MS = 1_000;

/** The pauses between attempts. */
export const RETRY_BACKOFF = { firstMs: 25, longestMs: 500, spread: [0.5, 1] } as const;

export interface CallAttempt {
  connection: NodeConnection;
  /** Aborts at the deadline, and when the connection is abandoned. */
  signal: AbortSignal;
  isFirst: boolean;
}

/** Makes a call with retries. `right` is what the user needs for it. */
export type CallWithRetry = <Result>(
  right: RequiredRight,
  attempt: (context: CallAttempt) => Promise<Result>,
) => Promise<Result>;

/**
 * Creates a function that repeats a call until it succeeds, fails with a final error, or reaches
 * the deadline: `deadlineMs` after its start, or sooner if its request has less time left to wait
 * (`withWaitBudget`). While the store is known to be away, a call fails at once. Final TurnlogErrors
 * are thrown unchanged, all other errors as `store_unavailable`. A single attempt has no time limit: it waits for a slow node, and ends when the connection to a
 * frozen node is abandoned.
 */
export function createCallWithRetry(
  connections: ConnectionManager,
  deadlineMs: number,
): CallWithRetry {
  async function runAttempt<Result>(
    attempt: (context: CallAttempt) => Promise<Result>,
    deadline: AbortSignal,
    isFirst: boolean,
  ): Promise<Result> {
    const connection = await connections.current(deadline, { failsWhileAway: true });
    const { lost } = connection;
    const ending = new AbortController();
    using _losing = addAbortListener(lost, () => ending.abort(lost.reason));
    using _expiring = addAbortListener(deadline, () => ending.abort(deadline.reason));
    try {
      return await attempt({ connection, signal: ending.signal, isFirst });
    } catch (error) {
      connections.reportFailure(connection, error);
      throw error;
    }
  }

  const unavailable = (cause: unknown) =>
    storeUnavailableError(
      'The event store does not answer.',
      new Error(connections.trouble() ?? 'No answer arrived before the deadline.', { cause }),
    );

  function throwIfFinal(error: unknown, right: RequiredRight): void {
    if (isTurnlogError(error) && !error.retriable) throw error;
    const refused = 'The event store refuses the credentials.';
    if (isAccessDenied(error))
      throw storeUnavailableError(refused, connections.recordDenied(right, error));
    if (isUnauthenticated(error)) throw storeUnavailableError(refused, error);
    if (connections.closed.aborted)
      throw storeUnavailableError('The event store is closed.', error);
    if (error instanceof StoreAwayError) throw unavailable(error);
  }

  return async (right, attempt) => {
    const limitMs = waitLimitMs(deadlineMs);
    if (limitMs < 1) throw unavailable(new Error('the request has waited for its whole time'));
    const startedAt = performance.now();
    const deadline = new AbortController();
    const expire = (): void => deadline.abort(new Error(`no success within ${limitMs} ms`));
    const timer = setTimeout(expire, limitMs);
    let lastError: unknown;
    let isPrompt = false;
    try {
      for (let failures = 0; ; failures += 1) {
        try {
          const result = await runAttempt(attempt, deadline.signal, failures === 0);
          connections.recordAllowed(right);
          isPrompt = failures === 0 && performance.now() - startedAt <= PROMPT_ANSWER_MS;
          return result;
        } catch (error) {
          throwIfFinal(error, right);
          if (deadline.signal.aborted) throw unavailable(lastError ?? error);
          lastError = error;
        }
        await sleepUntilAborted(backoffMs(RETRY_BACKOFF, failures), { signal: deadline.signal });
      }
    } finally {
      clearTimeout(timer);
      if (!isPrompt) countWait(startedAt);
    }
  };
}
