import { TurnlogError } from '../errors/turnlogError.ts';
import { registerResource, type BoundedResource, type ResourceUsage } from './resources.ts';

const RETRY = { retriable: true, retryAfterSeconds: 2 };

/**
 * The error for a request that finds no capacity, or waited too long for it, by whose capacity is
 * exhausted.
 */
const capacityError = (exhausted: 'process' | 'account' | undefined): TurnlogError =>
  exhausted === 'account'
    ? new TurnlogError(
        'rate_limited',
        'The account has reached its limit of work in progress. Try again when some of it has completed.',
        RETRY,
      )
    : new TurnlogError('overloaded', 'The service is at capacity. Try again in a moment.', RETRY);

/** The capacity of a process, or the most that one account may use of it. */
export interface Capacity {
  permits: number;
  bytes: number;
}

/** A request for a permit of a size, which is 0 bytes by default. */
export interface PermitRequest {
  account_id: string;
  bytes?: number;
  /** The account's own limit, when lower than its share. */
  limit?: Capacity;
}

/** Whose capacity is exhausted; undefined while there is some left. */
type ExhaustedScope = 'process' | 'account' | undefined;

export interface Permit extends Disposable {
  /**
   * Changes the size, while `reservedBytes` are reserved for another request. Returns false,
   * without a change, when the capacity does not suffice.
   */
  resize(bytes: number, reservedBytes?: number): boolean;
  /** Counts a rejection: the holder gives up what the last `resize` did not grant. */
  countRejection(): void;
  /** Releases the permit; idempotent. */
  release(): void;
}

/** The use of permits and bytes. */
export type PoolUsage = Required<Pick<ResourceUsage, 'count' | 'bytes' | 'rejected'>>;

export interface PermitPool extends BoundedResource {
  usage(): PoolUsage;
  /**
   * Whose capacity is exhausted for a request, while `reservedBytes` are reserved for another one.
   */
  exhaustedScope(request: PermitRequest, reservedBytes?: number): ExhaustedScope;
  /** True if the account has more bytes than its share of what the others leave free. */
  exceedsShare(account_id: string): boolean;
  /** Issues a permit regardless of capacity. */
  forceAcquire(request: PermitRequest): Permit;
  /**
   * Issues a permit. Throws `rate_limited` (the account's capacity) or `overloaded` (the
   * process's).
   */
  acquire(request: PermitRequest): Permit;
  /** Counts the rejection of a request. Returns the error that `acquire` throws. */
  reject(request: PermitRequest, reservedBytes?: number): TurnlogError;
  /** The most bytes that one request can count: half of an account's share or own limit. */
  largestRequest(ownLimit?: Capacity): number;
  /** Bytes that must be free for a request to be admitted. */
  freeBytesFor(request: PermitRequest): number;
  /** The number of issued permits. */
  activeCount(): number;
}

const UNLIMITED: Capacity = { permits: Infinity, bytes: Infinity };

const half = ({ permits, bytes }: Capacity): Capacity => ({
  permits: permits / 2,
  bytes: bytes / 2,
});

/** A permit pool that is part of another resource, and not registered itself. */
export function createUnregisteredPool(all: Capacity, share = half(all)): PermitPool {
  const rejected = { account: 0, process: 0 };
  /** Of the bytes that an account leaves free, it may use one part in this many. */
  const freePerUsed = Number.isFinite(all.bytes) ? all.bytes / share.bytes : 1;
  const process: Capacity = { permits: 0, bytes: 0 };
  const accounts = new Map<string, Capacity>();

  function limitOf(account: Capacity, ownLimit = UNLIMITED): Capacity {
    const limitFor = (what: keyof Capacity): number => {
      const others = process[what] - account[what];
      return Math.min(ownLimit[what], share[what] * (1 - others / all[what]));
    };
    return { permits: limitFor('permits'), bytes: limitFor('bytes') };
  }

  const largestRequest = (ownLimit = UNLIMITED): number =>
    Math.min(ownLimit.bytes, share.bytes) / 2;

  const countedBytes = ({ bytes = 0, limit: ownLimit }: PermitRequest): number =>
    Math.min(bytes, largestRequest(ownLimit));

  function findExhaustedScope(request: PermitRequest, reservedBytes = 0): ExhaustedScope {
    const bytes = countedBytes(request);
    const account = accounts.get(request.account_id);
    const limit = limitOf(account ?? { permits: 0, bytes: 0 }, request.limit);
    if (account && (account.permits + 1 > limit.permits || account.bytes + bytes > limit.bytes))
      return 'account';
    // Other accounts leave too little to one that has nothing.
    const isCrowdedOut = !account && bytes > limit.bytes;
    const isFull =
      process.permits + 1 > all.permits || process.bytes + bytes > all.bytes - reservedBytes;
    return isCrowdedOut || isFull ? 'process' : undefined;
  }

  function issue({ account_id, limit: ownLimit, bytes: initialBytes = 0 }: PermitRequest): Permit {
    let bytes = initialBytes;
    let isReleased = false;
    let exhausted: NonNullable<ExhaustedScope> = 'process';
    const account = accounts.get(account_id) ?? { permits: 0, bytes: 0 };
    accounts.set(account_id, account);
    const add = (permits: number, addedBytes: number): void => {
      for (const used of [process, account]) {
        used.permits += permits;
        used.bytes += addedBytes;
      }
    };
    add(1, bytes);
    function release(): void {
      if (isReleased) return;
      isReleased = true;
      add(-1, -bytes);
      if (account.permits === 0) accounts.delete(account_id);
    }
    return {
      resize(newBytes, reservedBytes = 0) {
        const addedBytes = newBytes - bytes;
        const grows = (used: Capacity, limit: number): boolean =>
          addedBytes <= 0 || used.bytes + addedBytes <= limit;
        const isFull = !grows(process, all.bytes - reservedBytes);
        if (isFull || !grows(account, limitOf(account, ownLimit).bytes)) {
          exhausted = isFull ? 'process' : 'account';
          return false;
        }
        bytes = newBytes;
        add(0, addedBytes);
        return true;
      },
      countRejection: () => void (rejected[exhausted] += 1),
      release,
      [Symbol.dispose]: release,
    };
  }

  function reject(request: PermitRequest, reservedBytes = 0): TurnlogError {
    const exhausted = findExhaustedScope(request, reservedBytes);
    rejected[exhausted ?? 'process'] += 1;
    return capacityError(exhausted);
  }

  return {
    exhaustedScope: findExhaustedScope,
    exceedsShare(account_id) {
      const account = accounts.get(account_id);
      return account !== undefined && account.bytes > limitOf(account).bytes;
    },
    forceAcquire: issue,
    acquire(request) {
      if (findExhaustedScope(request)) throw reject(request);
      return issue({ ...request, bytes: countedBytes(request) });
    },
    largestRequest,
    freeBytesFor: (request) =>
      accounts.has(request.account_id) ? (request.bytes ?? 0) : countedBytes(request) * freePerUsed,
    activeCount: () => process.permits,
    reject,
    usage: () => ({
      count: { limit: all.permits, used: process.permits },
      bytes: { limit: all.bytes, used: process.bytes },
      rejected,
    }),
  };
}

/**
 * Counts permits and bytes of the process and of each account. An account may use a share of what
 * the others leave free: half when it is alone, a third each for two accounts, and so on. A request
 * counts at most half of a share. A newly active account therefore always finds capacity, however
 * much the others use. The metrics of the process show the pool under its name.
 */
export const createPermitPool = (name: string, all: Capacity, share?: Capacity): PermitPool =>
  registerResource(name, createUnregisteredPool(all, share));
