import type { Permit } from '../../lib/concurrency/capacity.ts';
import type { MemoryLedger } from '../../lib/memory/ledger.ts';
import type { WaitLimits } from '../../lib/time/sleep.ts';
import { LIMITS } from '../../limits.ts';
import { MAX_APPEND_BYTES } from '../../ports/eventStore.ts';

/**
 * Runs a read of a stream within memory that it reserves first. What `read` reads in turn needs no
 * more memory. Throws `rate_limited`, `overloaded` or the reason of the client's disconnect.
 */
export type ReserveRead = <Result>(
  read: () => Promise<Result>,
  limits?: WaitLimits,
) => Promise<Result>;

/** The most bytes of a page of events: the last event may exceed the limit. */
export const READ_PAGE_BYTES = LIMITS.store.pageBytes + MAX_APPEND_BYTES;

/**
 * Reserves the memory of a page for the reads of one request. Reads within a read, and reads side by
 * side, share the reservation: a request never waits for memory while it holds some.
 * `onDisconnect` is that of RunContext.
 */
export function createReadReservation(
  memory: Pick<MemoryLedger, 'tryReserve' | 'reserve'>,
  account_id: string,
  onDisconnect?: (onDisconnect: (reason: Error) => void) => () => void,
): ReserveRead {
  const request = { account_id, purpose: 'sessionReads', bytes: READ_PAGE_BYTES } as const;
  const createdAt = performance.now();
  let readers = 0;
  let permit: Permit | undefined;
  let waiting: Promise<void> | undefined;

  async function waitForPermit({ until, signal }: WaitLimits): Promise<void> {
    const leaving = new AbortController();
    const stopWatching = onDisconnect?.((reason) => leaving.abort(reason));
    // Of the whole request: those that wait for the same lock would otherwise wait one after another.
    const deadline = until ?? createdAt + LIMITS.http.answerWaitMs;
    const waitMs = Math.max(0, deadline - performance.now());
    const ends = signal ? AbortSignal.any([signal, leaving.signal]) : leaving.signal;
    try {
      permit = await memory.reserve(request, { waitMs, signal: ends });
    } finally {
      stopWatching?.();
      waiting = undefined;
    }
  }

  return async (read, limits = {}) => {
    readers += 1;
    try {
      if (!waiting) permit ??= memory.tryReserve(request);
      if (!permit) await (waiting ??= waitForPermit(limits));
      return await read();
    } finally {
      readers -= 1;
      if (readers === 0) {
        permit?.release();
        permit = undefined;
      }
    }
  };
}

/** Runs a read within the memory that its source reserves, if it reserves any. */
export const withReadMemory = <Result>(
  { reserveRead, waitLimits }: { reserveRead?: ReserveRead | undefined; waitLimits?: WaitLimits },
  read: () => Promise<Result>,
): Promise<Result> => (reserveRead ? reserveRead(read, waitLimits) : read());
