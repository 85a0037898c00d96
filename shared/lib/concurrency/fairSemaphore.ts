import {
  createUnregisteredPool,
  type PermitRequest,
  type Permit,
  type PoolUsage,
  type Capacity,
} from './capacity.ts';
import { acquireWithTimeout, type AcquireOptions } from './acquireWithTimeout.ts';
import { registerResource, type BoundedResource } from './resources.ts';

interface Waiter {
  request: PermitRequest;
  admit: (permit: Permit) => void;
}

/** How long to wait, and the signal that ends the wait. */
export type AcquireLimits = Omit<AcquireOptions, 'timeoutError'>;

export interface FairSemaphore extends BoundedResource {
  usage(): PoolUsage & { waiting: number };
  /** Waits for a permit. Throws `rate_limited`, `overloaded` or the abort reason. */
  acquire(request: PermitRequest, bounds: AcquireLimits): Promise<Permit>;
  /** Returns a permit if one is available without waiting. */
  tryAcquire(request: PermitRequest): Permit | undefined;
  /** Issues a permit without waiting. Throws `rate_limited` or `overloaded`. */
  acquireNow(request: PermitRequest): Permit;
  /** Issues a permit regardless of capacity and waiters. */
  forceAcquire(request: PermitRequest): Permit;
  /** The number of issued permits. */
  activeCount(): number;
  /** The most bytes that one request can count: half of an account's share or own limit. */
  largestRequest(ownLimit?: Capacity): number;
  hasWaiters(): boolean;
  /** True if requests wait for bytes that the account may hold: its own, or any for lack of free ones. */
  isInTheWay(account_id: string): boolean;
  /** True if the account has more bytes than its share of what the others leave free. */
  exceedsShare(account_id: string): boolean;
  /** True if the request would not have to wait, apart from earlier ones of its account. */
  hasRoomFor(request: PermitRequest): boolean;
}

/**
 * A semaphore that is fair between accounts: they take turns, each with its own oldest request
 * first. An account that has used up its share does not block the others. When the next request is
 * too large for the remaining bytes, freed bytes are reserved for it, so that smaller requests
 * can't overtake it indefinitely; they use the rest. The metrics of the process show the semaphore
 * under its name. Before it refuses a request for which the process lacks bytes, it calls `withLoan`,
 * which may raise `all.bytes` and `share.bytes` and attempt the request again.
 */
export function createFairSemaphore(
  name: string,
  all: Capacity,
  share?: Capacity,
  withLoan: (attempt: () => Permit | undefined) => Permit | undefined = () => undefined,
): FairSemaphore {
  const pool = createUnregisteredPool(all, share);
  /** Waiting requests by account; the account whose turn it is comes first. */
  const waiting = new Map<string, Set<Waiter>>();
  /** Bytes reserved for one waiting request. */
  let reservedBytes = 0;

  function removeWaiter(waiter: Waiter): void {
    const queue = waiting.get(waiter.request.account_id);
    queue?.delete(waiter);
    if (queue?.size === 0) waiting.delete(waiter.request.account_id);
  }

  /** Admits all requests that fit. Setting an account again moves it behind all others. */
  function admitWaiters(): void {
    reservedBytes = 0;
    for (const [account_id, queue] of waiting) {
      if (pool.activeCount() >= all.permits) return;
      const next = queue.values().next().value!;
      const exhausted = pool.exhaustedScope(next.request, reservedBytes);
      if (exhausted === 'process' && reservedBytes === 0)
        reservedBytes = pool.freeBytesFor(next.request);
      if (exhausted !== undefined) continue;
      waiting.delete(account_id);
      queue.delete(next);
      if (queue.size > 0) waiting.set(account_id, queue);
      next.admit(issue(countedRequest(next.request)));
    }
  }

  function issue(request: PermitRequest): Permit {
    const permit = pool.forceAcquire(request);
    function release(): void {
      permit.release();
      if (waiting.size > 0) admitWaiters();
    }
    return {
      ...permit,
      resize(bytes) {
        const resized = permit.resize(bytes, reservedBytes);
        if (resized && waiting.size > 0) admitWaiters();
        return resized;
      },
      release,
      [Symbol.dispose]: release,
    };
  }

  /** Requests of other accounts may wait: the bytes reserved for one of them are not available. */
  const findExhaustedScope = (request: PermitRequest) =>
    pool.exhaustedScope(request, reservedBytes);

  const countedRequest = (request: PermitRequest): PermitRequest => ({
    ...request,
    bytes: Math.min(request.bytes ?? 0, pool.largestRequest(request.limit)),
  });

  function tryAcquire(request: PermitRequest): Permit | undefined {
    if (waiting.has(request.account_id)) return undefined;
    // A loan raises the share, of which a request counts at most half.
    const counted = countedRequest(request);
    const attempt = (): Permit | undefined =>
      findExhaustedScope(counted) === undefined ? issue(counted) : undefined;
    return findExhaustedScope(counted) === 'process' ? withLoan(attempt) : attempt();
  }

  async function waitForPermit(request: PermitRequest, bounds: AcquireLimits): Promise<Permit> {
    let permit: Permit | undefined;
    const join = (admit: () => void): (() => void) => {
      const waiter: Waiter = {
        request,
        admit: (issued) => {
          permit = issued;
          admit();
        },
      };
      const queue = waiting.get(request.account_id) ?? new Set();
      waiting.set(request.account_id, queue.add(waiter));
      return () => {
        removeWaiter(waiter);
        admitWaiters();
      };
    };
    await acquireWithTimeout(join, {
      ...bounds,
      timeoutError: () => pool.reject(request),
    });
    return permit!;
  }

  const waitingCount = (): number =>
    [...waiting.values()].reduce((total, queue) => total + queue.size, 0);

  return registerResource(name, {
    acquire: async (request, bounds) => {
      bounds.signal.throwIfAborted();
      const permit = tryAcquire(request);
      if (permit) return permit;
      const isFirst = !waiting.has(request.account_id);
      if (
        isFirst &&
        reservedBytes === 0 &&
        pool.activeCount() < all.permits &&
        findExhaustedScope(request) === 'process'
      )
        reservedBytes = pool.freeBytesFor(request);
      return waitForPermit(request, bounds);
    },
    tryAcquire,
    acquireNow(request) {
      const permit = tryAcquire(request);
      if (!permit) throw pool.reject(request, reservedBytes);
      return permit;
    },
    forceAcquire: issue,
    activeCount: pool.activeCount,
    largestRequest: pool.largestRequest,
    hasWaiters: () => waiting.size > 0,
    isInTheWay: (account_id) => reservedBytes > 0 || waiting.has(account_id),
    exceedsShare: pool.exceedsShare,
    hasRoomFor: (request) => findExhaustedScope(countedRequest(request)) === undefined,
    usage: () => ({ ...pool.usage(), waiting: waitingCount() }),
  });
}
