import { addAbortListener } from 'node:events';

/**
 * Those who wait for a connection. Each leaves when it gives up, or an outage would collect them.
 */
export interface Waiting {
  /**
   * Resolves at the next `proceed`. Errors: the reason of the signal, or of the store's being
   * closed.
   */
  wait(signal: AbortSignal): Promise<void>;
  /** Lets all of them go on. */
  proceed(): void;
}

export function createWaiting(closed: AbortSignal): Waiting {
  const waiting = new Set<() => void>();
  return {
    async wait(signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      using _closing = addAbortListener(closed, () => reject(closed.reason));
      using _givingUp = addAbortListener(signal, () => reject(signal.reason));
      waiting.add(resolve);
      try {
        await promise;
      } finally {
        waiting.delete(resolve);
      }
    },
    proceed() {
      for (const proceed of waiting) proceed();
    },
  };
}
