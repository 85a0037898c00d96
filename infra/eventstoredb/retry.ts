import { addAbortListener } from 'node:events';
import { backoffMs } from '../../shared/lib/time/backoff.ts';
import { isTurnlogError, storeUnavailableError } from '../../shared/lib/errors/turnlogError.ts';
import { sleepUntilAborted } from '../../shared/lib/time/sleep.ts';
import type { Connection, Connections } from './connection.ts';
import type { Right } from './rights.ts';
import { isAccessDenied, isUnauthenticated } from './serverErrors.ts';

/** Between tries. */
export const PAUSES = { firstMs: 25, longestMs: 500, spread: [0.5, 1] } as const;

export interface Attempt {
  connection: Connection;
  /** Aborts when the connection is given up, and at the deadline: the attempt ends then. */
  signal: AbortSignal;
  /** True for the first attempt of a call. */
  first: boolean;
}

/** `right` is what the user must be allowed to do, for who has to grant it. */
export type Retrying = <T>(right: Right, attempt: (context: Attempt) => Promise<T>) => Promise<T>;

/**
 * Repeats what may be repeated until it succeeds or the deadline has passed. How long one attempt
 * may take is not limited: a node that is slow is waited for, and one that is frozen or gone is
 * given up by its connection, which ends the attempt.
 * Errors: TurnlogErrors of an attempt that are final, as they are; `store_unavailable` for all
 * others.
 */
export function createRetrying(connections: Connections, deadlineMs: number): Retrying {
  async function once<T>(
    attempt: (context: Attempt) => Promise<T>,
    deadline: AbortSignal,
    first: boolean,
  ): Promise<T> {
    const connection = await connections.current(deadline);
    const { lost } = connection;
    const ended = new AbortController();
    using _losing = addAbortListener(lost, () => ended.abort(lost.reason));
    using _ending = addAbortListener(deadline, () => ended.abort(deadline.reason));
    try {
      return await attempt({ connection, signal: ended.signal, first });
    } catch (error) {
      connections.failed(connection, error);
      throw error;
    }
  }

  const unavailable = (cause: unknown) =>
    storeUnavailableError(
      'The event store does not answer.',
      new Error(connections.trouble() ?? 'No answer came in time.', { cause }),
    );

  /** Throws what ends the tries, where this error does. */
  function requireRepeatable(error: unknown, right: Right): void {
    if (isTurnlogError(error) && !error.retriable) throw error;
    const refused = 'The event store refuses the credentials.';
    if (isAccessDenied(error))
      throw storeUnavailableError(refused, connections.denied(right, error));
    if (isUnauthenticated(error)) throw storeUnavailableError(refused, error);
    if (connections.closed.aborted)
      throw storeUnavailableError('The event store is closed.', error);
  }

  return async (right, attempt) => {
    const over = new AbortController();
    const late = (): void => over.abort(new Error(`no success within ${deadlineMs} ms`));
    const timer = setTimeout(late, deadlineMs);
    let last: unknown;
    try {
      for (let tries = 0; ; tries += 1) {
        try {
          const result = await once(attempt, over.signal, tries === 0);
          connections.allowed(right);
          return result;
        } catch (error) {
          requireRepeatable(error, right);
          if (over.signal.aborted) throw unavailable(last ?? error);
          last = error;
        }
        await sleepUntilAborted(backoffMs(PAUSES, tries), { signal: over.signal });
      }
    } finally {
      clearTimeout(timer);
    }
  };
}
