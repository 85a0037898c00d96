import { addAbortListener } from 'node:events';
import { TurnlogError } from '../../errors.ts';

export interface SessionQueue {
  /**
   * Waits for the session's other runs in this process, first come first served. Resolves with what
   * lets the next one in.
   * Errors: `session_busy` after `waitMs`, the signal's reason when it aborts.
   */
  enter(sessionId: string, waitMs: number, signal: AbortSignal): Promise<() => void>;
}

/** Those who wait for one session, first come first. */
type Line = Array<() => void>;

export const sessionBusy = (): TurnlogError =>
  new TurnlogError(
    'session_busy',
    'Another run of this session is still going on. Try again when it has ended.',
    { retriable: true, retryAfterSeconds: 1 },
  );

const waitIn = (line: Line, waitMs: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const stopWaiting = (): void => {
      clearTimeout(timer);
      stopping[Symbol.dispose]();
    };
    const admit = (): void => {
      stopWaiting();
      resolve();
    };
    const giveUp = (error: Error): void => {
      stopWaiting();
      line.splice(line.indexOf(admit), 1);
      reject(error);
    };
    const stopping = addAbortListener(signal, () => giveUp(signal.reason as Error));
    const timer = setTimeout(() => giveUp(sessionBusy()), waitMs);
    line.push(admit);
  });

/** Runs of one session happen one after the other, instead of racing for the stream. */
export function createSessionQueue(): SessionQueue {
  /** A session is present while one of its runs is in. */
  const lines = new Map<string, Line>();

  const leave = (sessionId: string): void => {
    const next = lines.get(sessionId)?.shift();
    if (next) next();
    else lines.delete(sessionId);
  };

  return {
    enter: async (sessionId, waitMs, signal) => {
      signal.throwIfAborted();
      const line = lines.get(sessionId);
      if (line) await waitIn(line, waitMs, signal);
      else lines.set(sessionId, []);
      return () => leave(sessionId);
    },
  };
}
