import { capacityError } from '../errors/capacityError.ts';
import { createPermitPool, type PermitRequest, type Permit, type Capacity } from './capacity.ts';
import { acquireWithTimeout, type AcquireOptions } from './acquireWithTimeout.ts';

interface Waiter {
  asked: PermitRequest;
  admit: (place: Permit) => void;
}

/** How long somebody waits, and what ends the wait sooner. */
type AcquireLimits = Omit<AcquireOptions, 'timeoutError'>;

export interface FairSemaphore {
  /** Waits for a place. Errors: `rate_limited`, `overloaded`, the signal's reason. */
  acquire(asked: PermitRequest, bounds: AcquireLimits): Promise<Permit>;
  /** A place that is there without a wait. */
  tryAcquire(asked: PermitRequest): Permit | undefined;
  /** Gives a place, whether there is room or not, and whoever waits. */
  forceAcquire(asked: PermitRequest): Permit;
  /** How many are in. */
  activeCount(): number;
  /** Whether anybody waits. */
  hasWaiters(): boolean;
}

/**
 * A line for places in which accounts take turns, each with its own oldest first: whoever has had a
 * place goes behind all other accounts that wait. An account that has used up its share keeps nobody
 * back. When the next one's turn has come and it is too large for what is left, what becomes free is kept
 * for it, so that smaller ones can't pass it for ever; they go on in the rest.
 */
export function createFairSemaphore(all: Capacity, share?: Capacity): FairSemaphore {
  const places = createPermitPool(all, share);
  /** Those who wait, by account; the account whose turn it is comes first. */
  const waiting = new Map<string, Set<Waiter>>();
  /** Bytes that are kept for one who waits. */
  let kept = 0;

  function leaveLine(waiter: Waiter): void {
    const line = waiting.get(waiter.asked.account_id);
    line?.delete(waiter);
    if (line?.size === 0) waiting.delete(waiter.asked.account_id);
  }

  /** Lets in whoever fits. An account that is set again comes up again, after all others. */
  function letIn(): void {
    kept = 0;
    for (const [account_id, line] of waiting) {
      if (places.activeCount() >= all.permits) return;
      const first = line.values().next().value!;
      const full = places.exhaustedScope(first.asked, kept);
      if (full === 'process' && kept === 0) kept = first.asked.bytes;
      if (full !== undefined) continue;
      waiting.delete(account_id);
      line.delete(first);
      if (line.size > 0) waiting.set(account_id, line);
      first.admit(take(first.asked));
    }
  }

  function take(asked: PermitRequest): Permit {
    const place = places.forceAcquire(asked);
    return {
      resize(bytes) {
        const resized = place.resize(bytes, kept);
        if (resized && waiting.size > 0) letIn();
        return resized;
      },
      release() {
        place.release();
        if (waiting.size > 0) letIn();
      },
    };
  }

  /** Whoever waits had no room, or what is kept for one of them is not for this one. */
  const fullFor = (asked: PermitRequest) => places.exhaustedScope(asked, kept);

  function tryEnter(asked: PermitRequest): Permit | undefined {
    if (waiting.has(asked.account_id) || fullFor(asked) !== undefined) return undefined;
    return take(asked);
  }

  async function wait(asked: PermitRequest, bounds: AcquireLimits): Promise<Permit> {
    let place: Permit | undefined;
    const join = (admit: () => void): (() => void) => {
      const waiter: Waiter = {
        asked,
        admit: (given) => {
          place = given;
          admit();
        },
      };
      const line = waiting.get(asked.account_id) ?? new Set();
      waiting.set(asked.account_id, line.add(waiter));
      return () => {
        leaveLine(waiter);
        letIn();
      };
    };
    await acquireWithTimeout(join, {
      ...bounds,
      timeoutError: () => capacityError(places.exhaustedScope(asked)),
    });
    return place!;
  }

  return {
    acquire: async (asked, bounds) => {
      bounds.signal.throwIfAborted();
      const place = tryEnter(asked);
      if (place) return place;
      const isFirst = !waiting.has(asked.account_id);
      if (
        isFirst &&
        kept === 0 &&
        places.activeCount() < all.permits &&
        fullFor(asked) === 'process'
      )
        kept = asked.bytes;
      return wait(asked, bounds);
    },
    tryAcquire: tryEnter,
    forceAcquire: take,
    activeCount: places.activeCount,
    hasWaiters: () => waiting.size > 0,
  };
}
