import type { Position } from '../ports/eventStore.ts';

interface Waiter {
  position: Position;
  resolve: (shown: boolean) => void;
  timer: NodeJS.Timeout;
}

/** The index of the first waiter whose position is after `position`. */
function upperBound(waiters: readonly Waiter[], position: Position): number {
  let [low, high] = [0, waiters.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((waiters[middle] as Waiter).position <= position) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Callers that wait for a position, sorted by position. Progress resolves those that it reaches.
 */
export function createPositionWaiters() {
  let waiters: Waiter[] = [];
  let shown: Position | undefined;

  function giveUp(waiter: Waiter): void {
    const end = upperBound(waiters, waiter.position);
    waiters.splice(waiters.lastIndexOf(waiter, end), 1);
    waiter.resolve(false);
  }

  return {
    /** The read models show every event up to this position. */
    shown: () => shown,

    /** True while a caller waits for a later position. */
    isAwaited: () => waiters.length > 0,

    show(position: Position): void {
      shown = position;
      for (const { timer, resolve } of waiters.splice(0, upperBound(waiters, position))) {
        clearTimeout(timer);
        resolve(true);
      }
    },

    /**
     * Resolves true once `position` is shown, and false after `timeoutMs` milliseconds or on close.
     */
    untilShown(position: Position, timeoutMs: number): Promise<boolean> {
      if (shown !== undefined && position <= shown) return Promise.resolve(true);
      return new Promise((resolve) => {
        const waiter: Waiter = {
          position,
          resolve,
          timer: setTimeout(() => giveUp(waiter), timeoutMs).unref(),
        };
        const end = upperBound(waiters, position);
        if (end === waiters.length) waiters.push(waiter);
        else waiters.splice(end, 0, waiter);
      });
    },

    /** Discards the shown position, for read models that were replaced or moved back. */
    reset(): void {
      shown = undefined;
    },

    close(): void {
      const abandoned = waiters;
      waiters = [];
      for (const { timer, resolve } of abandoned) {
        clearTimeout(timer);
        resolve(false);
      }
    },
  };
}
