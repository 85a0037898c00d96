import { setTimeout as delay } from 'node:timers/promises';

/** Waits so many milliseconds. Errors: the signal's reason. */
export const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => {
    throw signal?.reason;
  });

/** What may end a pause early, and whether it keeps the process alive (by default it does). */
interface SleepOptions {
  signal: AbortSignal;
  ref?: boolean;
}

/** Waits so many milliseconds, or less: the signal ends the pause without an error. */
export const sleepUntilAborted = (ms: number, options: SleepOptions): Promise<void> =>
  delay(ms, undefined, options).catch(() => undefined);

/** How long something may be waited for. */
export interface WaitLimits {
  /** No pause goes on beyond it; in milliseconds of `performance.now()`. */
  until?: number;
  /** Ends a pause. */
  signal?: AbortSignal | undefined;
}
