import type { ServerResponse } from 'node:http';
import type { MemoryLedger, MemoryRequest } from '../../../../shared/lib/memory/ledger.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { Permit } from '../../../../shared/lib/concurrency/capacity.ts';
import { isTurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { clientDisconnectError, onResponseClosed } from '../connection/clientDisconnect.ts';

/** Memory acquired before a response is made. */
export interface ResponsePermit extends Permit {
  /**
   * Keeps the memory of a response of `bytes` until it is sent. `release` has no effect from then on.
   * Resolves when the response may be sent.
   */
  holdUntilSent(bytes: number): Promise<void>;
}

/**
 * Memory of the responses in progress, from before their rows are read or their command is executed
 * until they are sent. No account holds more than its share.
 */
export interface ResponseMemoryPool {
  /**
   * Waits for memory until the deadline, fairly between accounts and in order within one. Small
   * responses don't wait. Throws `rate_limited` or `overloaded` on a timeout or a disconnect.
   */
  acquire(
    account_id: string,
    bytes: number,
    response: ServerResponse,
    deadline?: number,
  ): Promise<ResponsePermit>;
  /** The end of a wait that begins now, as `performance.now()` shows it. */
  deadline(): number;
  /**
   * Waits until the account has memory for another response, before a command whose response has an
   * unknown size. Throws as `acquire`.
   */
  waitForRoom(account_id: string, response: ServerResponse): Promise<void>;
  /** Acquires memory only where it is free and no response waits for it. */
  tryAcquire(account_id: string, bytes: number): Permit | undefined;
  /**
   * Counts a response whose command is executed, until it is sent. It waits for memory that the
   * account lacks, and then replaces the account's oldest unsent response, whose connection is cut.
   */
  holdUntilSent(account_id: string, bytes: number, response: ServerResponse): Promise<void>;
  /** True while responses wait, or where connections have more unsent bytes than the limit. */
  isScarce(unsent: number): boolean;
  /** True while responses wait for memory that the account may hold. */
  isInTheWay(account_id: string): boolean;
  /** True if the account has more than its share. */
  exceedsShare(account_id: string): boolean;
}

interface HeldResponse {
  response: ServerResponse;
  permit: Permit;
  bytes: number;
}

const requestOf = (account_id: string, bytes: number): MemoryRequest => ({
  account_id,
  purpose: 'answers',
  bytes,
});

/** Large responses by account, the oldest first, until they are sent. */
function createHeldResponses(exceedsShare: (account_id: string) => boolean) {
  const accounts = new Map<string, Set<HeldResponse>>();
  return {
    add(account_id: string, held: HeldResponse): void {
      const ofAccount = accounts.get(account_id) ?? new Set();
      accounts.set(account_id, ofAccount.add(held));
      onResponseClosed(held.response, () => {
        held.permit.release();
        ofAccount.delete(held);
        if (ofAccount.size === 0 && accounts.get(account_id) === ofAccount)
          accounts.delete(account_id);
      });
    },
    /** Cuts the oldest responses of an account until it is within its share, or `needed` bytes are free. */
    cutOldest(account_id: string, latest: ServerResponse, needed: number): void {
      const ofAccount = accounts.get(account_id) ?? new Set();
      let freed = 0;
      for (const held of ofAccount) {
        if (held.response === latest || freed >= needed || !exceedsShare(account_id)) return;
        // Its connection closes later, and it is not to be counted again meanwhile.
        ofAccount.delete(held);
        held.response.destroy();
        held.permit.release();
        freed += held.bytes;
      }
    },
  };
}

/** The memory that the ledger grants to responses. */
export function createResponseMemory(
  memory: MemoryLedger,
  waitMs: number = LIMITS.http.answerWaitMs,
): ResponseMemoryPool {
  const { limit } = memory.usage('answers');
  const exceedsShare = (account_id: string): boolean => memory.exceedsShare('answers', account_id);
  const held = createHeldResponses(exceedsShare);
  /** Bytes of complete responses that wait for memory, by account. */
  const waitingBytes = new Map<string, number>();

  const deadlineFromNow = (): number => performance.now() + waitMs;

  async function waitFor(
    request: MemoryRequest,
    response: ServerResponse,
    deadline = deadlineFromNow(),
  ): Promise<Permit> {
    const waiting = new AbortController();
    const { signal } = waiting;
    const stopWatching = onResponseClosed(response, () => waiting.abort(clientDisconnectError()));
    try {
      const remainingMs = Math.max(0, deadline - performance.now());
      return await memory.reserve(request, { waitMs: remainingMs, signal });
    } finally {
      stopWatching();
    }
  }

  /** Waits for the memory of a complete response; undefined if that takes too long. */
  async function waitComplete(
    request: MemoryRequest,
    response: ServerResponse,
  ): Promise<Permit | undefined> {
    const { account_id, bytes } = request;
    const others = waitingBytes.get(account_id) ?? 0;
    // Complete responses are in memory while they wait.
    if (others + bytes > memory.largestRequest('answers')) return undefined;
    waitingBytes.set(account_id, others + bytes);
    try {
      return await waitFor(request, response);
    } catch (error) {
      if (isTurnlogError(error)) return undefined;
      throw error;
    } finally {
      const remainingBytes = waitingBytes.get(account_id)! - bytes;
      if (remainingBytes > 0) waitingBytes.set(account_id, remainingBytes);
      else waitingBytes.delete(account_id);
    }
  }

  async function holdUntilSent(
    account_id: string,
    bytes: number,
    response: ServerResponse,
  ): Promise<void> {
    const request = requestOf(account_id, bytes);
    const granted = memory.tryReserve(request) ?? (await waitComplete(request, response));
    const permit = granted ?? memory.forceReserve(request);
    held.add(account_id, { response, permit, bytes });
    if (!granted && !response.closed) held.cutOldest(account_id, response, bytes);
  }

  return {
    async acquire(account_id, requested, response, deadline) {
      const request = requestOf(account_id, requested);
      const isSmall = requested <= LIMITS.http.smallAnswerBytes;
      const free = isSmall ? memory.forceReserve(request) : memory.tryReserve(request);
      const permit = free ?? (await waitFor(request, response, deadline));
      let isHeld = false;
      const release = (): void => void (isHeld || permit.release());
      return {
        ...permit,
        release,
        [Symbol.dispose]: release,
        async holdUntilSent(bytes) {
          isHeld = true;
          if (permit.resize(bytes)) return held.add(account_id, { response, permit, bytes });
          permit.release();
          await holdUntilSent(account_id, bytes, response);
        },
      };
    },
    deadline: deadlineFromNow,
    async waitForRoom(account_id, response) {
      const request = requestOf(account_id, 2 * LIMITS.http.smallAnswerBytes);
      if (!memory.hasRoomFor(request)) (await waitFor(request, response)).release();
    },
    tryAcquire: (account_id, requested) => memory.tryReserve(requestOf(account_id, requested)),
    holdUntilSent,
    isScarce: (unsent) => memory.hasWaiters('answers') || unsent > limit,
    isInTheWay: (account_id) => memory.isInTheWay('answers', account_id),
    exceedsShare,
  };
}
