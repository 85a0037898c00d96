import type { ServerResponse } from 'node:http';
import type { MemoryLedger, MemoryRequest } from '../../../../shared/lib/memory/ledger.ts';
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

const requestOf = (account_id: string, bytes: number): MemoryRequest => ({
  account_id,
  purpose: 'answers',
  bytes,
});

/** The memory that the ledger grants to responses. */
export function createResponseMemory(
  memory: MemoryLedger,
  waitMs: number = LIMITS.http.answerWaitMs,
): ResponseMemoryPool {
  const { limit } = memory.usage('answers');
  return {
    async acquire(account_id, requested, response) {
      const request = requestOf(account_id, requested);
      if (requested <= LIMITS.http.smallAnswerBytes) return memory.forceReserve(request);
      const permit = memory.tryReserve(request);
      if (permit) return permit;
      const waiting = new AbortController();
      const { signal } = waiting;
      const stopWatching = onResponseClosed(response, () => waiting.abort(clientDisconnectError()));
      try {
        return await memory.reserve(request, { waitMs, signal });
      } finally {
        stopWatching();
      }
    },
    tryAcquire: (account_id, requested) => memory.tryReserve(requestOf(account_id, requested)),
    holdUntilSent: (account_id, held, response) => {
      onResponseClosed(response, memory.forceReserve(requestOf(account_id, held)).release);
    },
    isScarce: (unsent) => memory.hasWaiters('answers') || unsent > limit,
  };
}
