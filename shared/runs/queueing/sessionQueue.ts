import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { acquireWithTimeout } from '../../lib/concurrency/acquireWithTimeout.ts';

export interface SessionQueue {
  /**
   * Waits for the session's other runs in this process, first come first served. Whose the session
   * is was asked before. Resolves with what lets the next one in.
   * Errors: `session_busy` after `waitMs`, or at once where too many wait already; the signal's
   * reason when it aborts.
   */
  acquire(sessionId: string, waitMs: number, signal: AbortSignal): Promise<() => void>;
}

/** Those who wait for one session, first come first. */
type Waiters = Set<() => void>;

export const sessionBusy = (): TurnlogError =>
  new TurnlogError(
    'session_busy',
    'Another run of this session is still going on. Try again when it has ended.',
    { retriable: true, retryAfterSeconds: 1 },
  );

/** Runs of one session happen one after the other, instead of racing for the stream. */
export function createSessionQueue(): SessionQueue {
  /** A session is present while one of its runs is in. */
  const lines = new Map<string, Waiters>();

  const leave = (sessionId: string): void => {
    const line = lines.get(sessionId);
    const next = line?.values().next().value;
    if (!next) lines.delete(sessionId);
    else {
      line.delete(next);
      next();
    }
  };

  return {
    acquire: async (sessionId, waitMs, signal) => {
      signal.throwIfAborted();
      const line = lines.get(sessionId);
      if (!line) lines.set(sessionId, new Set());
      else {
        if (line.size >= LIMITS.run.waitingOfSession) throw sessionBusy();
        const join = (admit: () => void): (() => void) => {
          line.add(admit);
          return () => line.delete(admit);
        };
        await acquireWithTimeout(join, { waitMs, signal, timeoutError: sessionBusy });
      }
      return () => leave(sessionId);
    },
  };
}
