import { addAbortListener } from 'node:events';

/** How long somebody waits, and what is said when that was too long. */
export interface AcquireOptions {
  waitMs: number;
  signal: AbortSignal;
  timeoutError: () => Error;
}

/**
 * Waits until what `join` is handed is called. `join` resolves with what takes the waiter out of
 * its line again, which happens when the wait ends otherwise.
 * Errors: `late()` after `waitMs`, the signal's reason.
 */
export const acquireWithTimeout = (
  join: (admit: () => void) => () => void,
  { waitMs, signal, timeoutError: late }: AcquireOptions,
): Promise<void> =>
  new Promise((resolve, reject) => {
    const stopWaiting = (): void => {
      clearTimeout(timer);
      stopping[Symbol.dispose]();
    };
    const giveUp = (error: Error): void => {
      stopWaiting();
      leaveLine();
      reject(error);
    };
    const leaveLine = join(() => {
      stopWaiting();
      resolve();
    });
    const stopping = addAbortListener(signal, () => giveUp(signal.reason as Error));
    const timer = setTimeout(() => giveUp(late()), waitMs);
  });
