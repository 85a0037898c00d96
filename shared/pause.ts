import { setTimeout as sleep } from 'node:timers/promises';

/** Waits so many milliseconds. Errors: the signal's reason. */
export const pauseFor = (ms: number, signal?: AbortSignal): Promise<void> =>
  sleep(ms, undefined, { signal }).catch(() => {
    throw signal?.reason;
  });

/** How long something may be waited for. */
export interface Bounds {
  /** No pause goes on beyond it; in milliseconds of `performance.now()`. */
  until?: number;
  /** Ends a pause. */
  signal?: AbortSignal | undefined;
}
