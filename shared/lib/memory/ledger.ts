import { getHeapStatistics } from 'node:v8';
import { LIMITS } from '../../limits.ts';
import type { Capacity, Permit, PermitRequest } from '../concurrency/capacity.ts';
import {
  createFairSemaphore,
  type AcquireLimits,
  type FairSemaphore,
} from '../concurrency/fairSemaphore.ts';

/** The purpose of reserved memory. Each has a ceiling, a part of the heap (LIMITS.heap). */
export type MemoryPurpose = keyof typeof LIMITS.heap;

/** A request for memory of an account. */
export interface MemoryRequest extends PermitRequest {
  bytes: number;
  purpose: MemoryPurpose;
}

/** The use of a purpose's memory, in bytes. */
interface MemoryUse {
  limit: number;
  used: number;
  reservations: number;
  /** Requests that were refused since the start. */
  rejections: number;
}

/**
 * Counts the memory of a process by purpose and by account. Bytes are reserved before they are
 * loaded, copied or parsed. An account can reserve half of a purpose's memory while it is alone, a
 * third while another one does the same, and so on; one request counts at most half of that share.
 */
export interface MemoryLedger {
  /**
   * Waits, fairly between accounts, until the bytes may be loaded. Throws `rate_limited`,
   * `overloaded` or the abort reason.
   */
  reserve(request: MemoryRequest, wait: AcquireLimits): Promise<Permit>;
  /** Reserves the bytes if they are available and no other request waits for them. */
  tryReserve(request: MemoryRequest): Permit | undefined;
  /** Reserves the bytes without waiting. Throws `rate_limited` or `overloaded`. */
  reserveNow(request: MemoryRequest): Permit;
  /** Counts bytes that are in memory already, even over the limit. */
  forceReserve(request: MemoryRequest): Permit;
  /** The most bytes that one request of the purpose can count, with the account's own limit. */
  largestRequest(purpose: MemoryPurpose, ownLimit?: Capacity): number;
  hasWaiters(purpose: MemoryPurpose): boolean;
  /** True if requests wait for bytes that the account may hold: its own, or any for lack of free ones. */
  isInTheWay(purpose: MemoryPurpose, account_id: string): boolean;
  /** True if the account has more than its share of what the others leave free, by `forceReserve`. */
  exceedsShare(purpose: MemoryPurpose, account_id: string): boolean;
  /** True if the request would not have to wait, apart from earlier ones of its account. */
  hasRoomFor(request: MemoryRequest): boolean;
  /** The limit, the use and the rejections of a purpose. */
  usage(purpose: MemoryPurpose): MemoryUse;
  /**
   * Lends the memory of the session cache to purposes that would be refused. Returns a function for
   * the bytes that the cache may use, less while they are lent.
   */
  lendCache(cache: LentCache): () => number;
}

/** A cache that gives up its memory. */
interface LentCache {
  bytes: number;
  evictTo(bytes: number): void;
}

/** The capacity of a purpose, and the largest share of one account. */
interface PurposeCapacity {
  all: Capacity;
  share?: Capacity;
  /** True if an operator has limited the bytes, which are then not exceeded with those of the cache. */
  isFixed?: boolean;
}

/** The part of the heap limit of Node.js, in bytes, that LIMITS.heap grants a purpose. */
export const heapBytesFor = (purpose: MemoryPurpose): number =>
  Math.floor(getHeapStatistics().heap_size_limit * LIMITS.heap[purpose]);

const inSnakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * The ledger of a process. `capacities` replaces the parts of the heap that LIMITS.heap grants.
 */
export function createMemoryLedger(
  capacities: Partial<Record<MemoryPurpose, PurposeCapacity>> = {},
): MemoryLedger {
  let cache: LentCache = { bytes: 0, evictTo: () => undefined };
  const borrowers: { lent: () => number }[] = [];
  const lentBytes = (): number => borrowers.reduce((sum, { lent }) => sum + lent(), 0);

  function open(purpose: MemoryPurpose): FairSemaphore {
    const { all: given, share: ofAccount, isFixed } = capacities[purpose] ?? {};
    const all = { permits: Infinity, bytes: heapBytesFor(purpose), ...given };
    const share = { permits: all.permits / 2, bytes: all.bytes / 2, ...ofAccount };
    const own = { all: all.bytes, share: share.bytes };
    const setLoan = (bytes: number): void => {
      all.bytes = own.all + bytes;
      share.bytes = own.share * (all.bytes / own.all);
    };
    /** Attempts a request with all that the cache can lend, of which only the used part stays lent. */
    function withLoan(attempt: () => Permit | undefined): Permit | undefined {
      const available = isFixed ? 0 : cache.bytes - lentBytes();
      if (available <= 0) return undefined;
      setLoan(all.bytes - own.all + available);
      const permit = attempt();
      const remaining = cache.bytes - lentBytes();
      if (permit) cache.evictTo(remaining);
      return permit;
    }
    const name = `memory_${inSnakeCase(purpose)}`;
    const semaphore = createFairSemaphore(name, all, share, withLoan);
    borrowers.push({
      lent() {
        // Return unused loans.
        const used = semaphore.usage().bytes.used - own.all;
        if (all.bytes > own.all) setLoan(Math.max(0, Math.min(used, all.bytes - own.all)));
        return all.bytes - own.all;
      },
    });
    return semaphore;
  }
  const purposes = Object.keys(LIMITS.heap) as MemoryPurpose[];
  const semaphores = Object.fromEntries(
    purposes.map((purpose) => [purpose, open(purpose)]),
  ) as Record<MemoryPurpose, FairSemaphore>;

  return {
    reserve: (request, wait) => semaphores[request.purpose].acquire(request, wait),
    tryReserve: (request) => semaphores[request.purpose].tryAcquire(request),
    reserveNow: (request) => semaphores[request.purpose].acquireNow(request),
    forceReserve: (request) => semaphores[request.purpose].forceAcquire(request),
    largestRequest: (purpose, ownLimit) => semaphores[purpose].largestRequest(ownLimit),
    hasWaiters: (purpose) => semaphores[purpose].hasWaiters(),
    isInTheWay: (purpose, account_id) => semaphores[purpose].isInTheWay(account_id),
    exceedsShare: (purpose, account_id) => semaphores[purpose].exceedsShare(account_id),
    hasRoomFor: (request) => semaphores[request.purpose].hasRoomFor(request),
    usage(purpose) {
      const { bytes, count, rejected } = semaphores[purpose].usage();
      return {
        ...bytes,
        reservations: count.used,
        rejections: rejected.account + rejected.process,
      };
    },
    lendCache(lent) {
      cache = lent;
      return () => cache.bytes - lentBytes();
    },
  };
}
