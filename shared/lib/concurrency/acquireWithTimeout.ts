import { addAbortListener } from 'node:events';

/** How long to wait, and the error after that. */
export interface AcquireOptions {
  waitMs: number;
  signal: AbortSignal;
  timeoutError: () => Error;
}

/**
 * Waits until the `admit` callback that `join` receives is called. `join` returns a function that
 * removes the waiter from its queue; it is called when the wait ends otherwise. Rejects with
 * `timeoutError()` after `waitMs`, or with the abort reason.
 */
export const acquireWithTimeout = (
  join: (admit: () => void) => () => void,
  { waitMs, signal, timeoutError }: AcquireOptions,
): Promise<void> =>
  new Promise((resolve, reject) => {
    const stopWaiting = (): void => {
      clearTimeout(timer);
      abortListener[Symbol.dispose]();
    };
    const giveUp = (error: Error): void => {
      stopWaiting();
      leaveQueue();
      reject(error);
    };
    const leaveQueue = join(() => {
      stopWaiting();
      resolve();
    });
    const abortListener = addAbortListener(signal, () => giveUp(signal.reason as Error));
    const timer = setTimeout(() => giveUp(timeoutError()), waitMs);
  });
