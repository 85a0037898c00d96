import { setTimeout as delay } from 'node:timers/promises';
import { isTurnlogError, storeUnavailable } from '../../shared/errors.ts';
import type { Connection, Connections } from './connections.ts';
import type { Right } from './rights.ts';
import { isAccessDenied, isUnauthenticated } from './serverErrors.ts';

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;

/** How long to wait before attempt n + 1, in milliseconds: doubling, bounded, and spread so that clients don't come in step. */
export const backOff = (attempt: number): number =>
  Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt) * (0.5 + Math.random() / 2);

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
 * Repeats what may be repeated until it succeeds or the deadline has passed. How long one attempt may take is not limited:
 * a node that is slow is waited for, and one that is frozen or gone is given up by its connection, which ends the attempt.
 * Errors: TurnlogErrors of an attempt that are final, as they are; `store_unavailable` for all others.
 */
export function createRetrying(connections: Connections, deadlineMs: number): Retrying {
  async function once<T>(
    attempt: (context: Attempt) => Promise<T>,
    deadline: AbortSignal,
    first: boolean,
  ): Promise<T> {
    const connection = await connections.current(deadline);
    const ended = new AbortController();
    const lost = (): void => ended.abort(connection.lost.reason);
    const late = (): void => ended.abort(deadline.reason);
    connection.lost.addEventListener('abort', lost, { once: true });
    deadline.addEventListener('abort', late, { once: true });
    try {
      if (connection.lost.aborted) lost();
      return await attempt({ connection, signal: ended.signal, first });
    } catch (error) {
      connections.failed(connection, error);
      throw error;
    } finally {
      connection.lost.removeEventListener('abort', lost);
      deadline.removeEventListener('abort', late);
    }
  }

  const unavailable = (cause: unknown) =>
    storeUnavailable(
      'The event store does not answer.',
      new Error(connections.trouble() ?? 'No answer came in time.', { cause }),
    );

  return async (right, attempt) => {
    const over = new AbortController();
    const timer = setTimeout(
      () => over.abort(new Error(`no success within ${deadlineMs} ms`)),
      deadlineMs,
    );
    let last: unknown;
    try {
      for (let tries = 0; ; tries += 1) {
        try {
          const result = await once(attempt, over.signal, tries === 0);
          connections.allowed(right);
          return result;
        } catch (error) {
          if (isTurnlogError(error) && !error.retriable) throw error;
          if (isAccessDenied(error))
            throw storeUnavailable(
              'The event store refuses the credentials.',
              connections.denied(right, error),
            );
          if (isUnauthenticated(error))
            throw storeUnavailable('The event store refuses the credentials.', error);
          if (connections.closed.aborted)
            throw storeUnavailable('The event store is closed.', error);
          if (over.signal.aborted) throw unavailable(last ?? error);
          last = error;
          await delay(backOff(tries), undefined, { signal: over.signal }).catch(() => undefined);
        }
      }
    } finally {
      clearTimeout(timer);
    }
  };
}
