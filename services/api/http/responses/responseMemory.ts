import type { ServerResponse } from 'node:http';
import { createFairSemaphore } from '../../../../shared/lib/concurrency/fairSemaphore.ts';
import { heapFor } from '../../../../shared/lib/heapBudget.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { Permit } from '../../../../shared/lib/concurrency/capacity.ts';
import { clientDisconnectError, onResponseClosed } from '../connection/clientDisconnect.ts';

/** Memory of the responses in progress, from before their rows are read until they are sent. */
export interface ResponseMemoryPool {
  /**
   * Waits for memory, fairly between accounts and in order within one. Small responses don't wait.
   * Throws `rate_limited` or `overloaded` on a timeout or a disconnect.
   */
  acquire(account_id: string, bytes: number, response: ServerResponse): Promise<Permit>;
  /** Acquires memory only where it is free and no response waits for it. */
  tryAcquire(account_id: string, bytes: number): Permit | undefined;
  /** Counts the memory of a response until it is sent, without waiting, even over the limit. */
  holdUntilSent(account_id: string, bytes: number, response: ServerResponse): void;
  /** True while responses wait, or where connections have more unsent bytes than the limit. */
  isScarce(unsent: number): boolean;
}

/** `bytes` is the limit of all responses together. */
export function createResponseMemory(
  bytes = heapFor('answers'),
  waitMs: number = LIMITS.http.answerWaitMs,
): ResponseMemoryPool {
  const semaphore = createFairSemaphore('responses', { permits: Infinity, bytes });
  return {
    async acquire(account_id, requested, response) {
      const request = { account_id, bytes: requested };
      if (requested <= LIMITS.http.smallAnswerBytes) return semaphore.forceAcquire(request);
      const permit = semaphore.tryAcquire(request);
      if (permit) return permit;
      const waiting = new AbortController();
      const { signal } = waiting;
      const stopWatching = onResponseClosed(response, () => waiting.abort(clientDisconnectError()));
      try {
        return await semaphore.acquire(request, { waitMs, signal });
      } finally {
        stopWatching();
      }
    },
    tryAcquire: (account_id, requested) => semaphore.tryAcquire({ account_id, bytes: requested }),
    holdUntilSent: (account_id, held, response) => {
      onResponseClosed(response, semaphore.forceAcquire({ account_id, bytes: held }).release);
    },
    isScarce: (unsent) => semaphore.hasWaiters() || unsent > bytes,
  };
}
