import { setTimeout as delay } from 'node:timers/promises';

/** Waits for a time in milliseconds. Rejects with the abort reason. */
export const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => {
    throw signal?.reason;
  });

/**
 * The signal that ends a pause early, and whether the pause keeps the process alive (the default).
 */
interface SleepOptions {
  signal: AbortSignal;
  ref?: boolean;
}

/** Waits for a time in milliseconds. The signal ends the pause without an error. */
export const sleepUntilAborted = (ms: number, options: SleepOptions): Promise<void> =>
  delay(ms, undefined, options).catch(() => undefined);

/** The limits of a wait. */
export interface WaitLimits {
  /** No pause continues beyond this time of `performance.now()`. */
  until?: number;
  /** Ends a pause. */
  signal?: AbortSignal | undefined;
}
