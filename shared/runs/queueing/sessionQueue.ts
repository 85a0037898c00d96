import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { acquireWithTimeout } from '../../lib/concurrency/acquireWithTimeout.ts';

export interface SessionQueue {
  /**
   * Waits for the session's other runs in this process, in order of arrival. Callers must have
   * checked the owner of the session. Resolves with the function that admits the next run. Throws
   * `session_busy` after `waitMs`, or immediately if too many runs wait, or the abort reason.
   */
  acquire(sessionId: string, waitMs: number, signal: AbortSignal): Promise<() => void>;
}

/** The waiting runs of one session, oldest first. */
type Waiters = Set<() => void>;

export const sessionBusyError = (): TurnlogError =>
  new TurnlogError(
    'session_busy',
    'Another run of this session is still going on. Try again when it has ended.',
    { retriable: true, retryAfterSeconds: 1 },
  );

/** Serializes the runs of a session, so that they do not conflict on its stream. */
export function createSessionQueue(): SessionQueue {
  /** Contains a session while one of its runs is active. */
  const queues = new Map<string, Waiters>();

  const release = (sessionId: string): void => {
    const queue = queues.get(sessionId);
    const next = queue?.values().next().value;
    if (!next) queues.delete(sessionId);
    else {
      queue.delete(next);
      next();
    }
  };

  return {
    acquire: async (sessionId, waitMs, signal) => {
      signal.throwIfAborted();
      const queue = queues.get(sessionId);
      if (!queue) queues.set(sessionId, new Set());
      else {
        if (queue.size >= LIMITS.run.waitingOfSession) throw sessionBusyError();
        const join = (admit: () => void): (() => void) => {
          queue.add(admit);
          return () => queue.delete(admit);
        };
        await acquireWithTimeout(join, { waitMs, signal, timeoutError: sessionBusyError });
      }
      return () => release(sessionId);
    },
  };
}
