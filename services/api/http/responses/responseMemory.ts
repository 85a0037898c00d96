import type { ServerResponse } from 'node:http';
import { createFairSemaphore } from '../../../../shared/lib/concurrency/fairSemaphore.ts';
import { heapFor } from '../../../../shared/lib/heapBudget.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { Permit } from '../../../../shared/lib/concurrency/capacity.ts';
import { clientDisconnectError, onResponseClosed } from '../connection/clientDisconnect.ts';

/**
 * The bytes that answers in progress hold, in one process: from before their rows are read until
 * their clients have taken them.
 */
export interface ResponseMemoryPool {
  /**
   * Waits for room, in turn with other accounts, and in order within one. A small answer does not.
   * Errors: `rate_limited`, `overloaded` where none came in time, or the client left.
   */
  acquire(account_id: string, bytes: number, response: ServerResponse): Promise<Permit>;
  /** Takes room that is there and that nobody waits for. */
  tryAcquire(account_id: string, bytes: number): Permit | undefined;
  /**
   * Counts what an answer holds until its client has taken it, or has left. It can't wait any more,
   * also where there is no room for it.
   */
  holdUntilSent(account_id: string, bytes: number, response: ServerResponse): void;
  /** True while answers wait, and where connections have more to send than there is room for. */
  isScarce(unsent: number): boolean;
}

/** `bytes`: all that may be held. */
export function createResponseMemory(
  bytes = heapFor('answers'),
  waitMs: number = LIMITS.http.answerWaitMs,
): ResponseMemoryPool {
  const line = createFairSemaphore({ permits: Infinity, bytes });
  return {
    async acquire(account_id, wanted, response) {
      const asked = { account_id, bytes: wanted };
      if (wanted <= LIMITS.http.smallAnswerBytes) return line.forceAcquire(asked);
      const place = line.tryAcquire(asked);
      if (place) return place;
      const waiting = new AbortController();
      const { signal } = waiting;
      const stopWatching = onResponseClosed(response, () => waiting.abort(clientDisconnectError()));
      try {
        return await line.acquire(asked, { waitMs, signal });
      } finally {
        stopWatching();
      }
    },
    tryAcquire: (account_id, wanted) => line.tryAcquire({ account_id, bytes: wanted }),
    holdUntilSent: (account_id, held, response) => {
      onResponseClosed(response, line.forceAcquire({ account_id, bytes: held }).release);
    },
    isScarce: (unsent) => line.hasWaiters() || unsent > bytes,
  };
}
