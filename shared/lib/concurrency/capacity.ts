import { capacityError } from '../errors/capacityError.ts';
import type { TurnlogError } from '../errors/turnlogError.ts';
import { registerResource, type BoundedResource } from './resources.ts';

/** The capacity of a process, or the most that one account may use of it. */
export interface Capacity {
  permits: number;
  bytes: number;
}

/** A request for a permit of a size. */
export interface PermitRequest {
  account_id: string;
  bytes: number;
  /** The account's own limit, when lower than its share. */
  limit?: Capacity;
}

/** Whose capacity is exhausted; undefined while there is some left. */
export type ExhaustedScope = 'process' | 'account' | undefined;

export interface Permit {
  /**
   * Changes the size, while `reservedBytes` are reserved for another request. Returns false,
   * without a change, when the capacity does not suffice.
   */
  resize(bytes: number, reservedBytes?: number): boolean;
  /** Releases the permit; idempotent. */
  release(): void;
}

export interface PermitPool extends BoundedResource {
  /**
   * Whose capacity is exhausted for a request, while `reservedBytes` are reserved for another one.
   * A request larger than the whole capacity is admitted when it is the only one.
   */
  exhaustedScope(request: PermitRequest, reservedBytes?: number): ExhaustedScope;
  /** Issues a permit regardless of capacity. */
  forceAcquire(request: PermitRequest): Permit;
  /**
   * Issues a permit. Throws `rate_limited` (the account's capacity) or `overloaded` (the
   * process's).
   */
  acquire(request: PermitRequest): Permit;
  /** Counts the rejection of a request. Returns the error that `acquire` throws. */
  reject(request: PermitRequest): TurnlogError;
  /** The number of issued permits. */
  activeCount(): number;
}

const UNLIMITED: Capacity = { permits: Infinity, bytes: Infinity };

const half = ({ permits, bytes }: Capacity): Capacity => ({
  permits: permits / 2,
  bytes: bytes / 2,
});

const fits = (used: Capacity, all: Capacity, bytes: number): boolean =>
  used.permits === 0 || (used.permits + 1 <= all.permits && used.bytes + bytes <= all.bytes);

/** A permit pool that is part of another resource, and not registered itself. */
export function createUnregisteredPool(all: Capacity, share = half(all)): PermitPool {
  const rejected = { account: 0, process: 0 };
  const process: Capacity = { permits: 0, bytes: 0 };
  const accounts = new Map<string, Capacity>();

  function limitOf(account: Capacity, ownLimit = UNLIMITED): Capacity {
    const limitFor = (what: keyof Capacity): number => {
      const others = process[what] - account[what];
      return Math.min(ownLimit[what], share[what] * (1 - others / all[what]));
    };
    return { permits: limitFor('permits'), bytes: limitFor('bytes') };
  }

  function findExhaustedScope(
    { account_id, limit: ownLimit, bytes }: PermitRequest,
    reservedBytes = 0,
  ): ExhaustedScope {
    const account = accounts.get(account_id);
    if (account && !fits(account, limitOf(account, ownLimit), bytes)) return 'account';
    const rest = { permits: all.permits, bytes: all.bytes - reservedBytes };
    return fits(process, rest, bytes) ? undefined : 'process';
  }

  function issue({ account_id, limit: ownLimit, bytes: initialBytes }: PermitRequest): Permit {
    let bytes = initialBytes;
    let isReleased = false;
    const account = accounts.get(account_id) ?? { permits: 0, bytes: 0 };
    accounts.set(account_id, account);
    const add = (permits: number, addedBytes: number): void => {
      for (const used of [process, account]) {
        used.permits += permits;
        used.bytes += addedBytes;
      }
    };
    add(1, bytes);
    return {
      resize(newBytes, reservedBytes = 0) {
        const addedBytes = newBytes - bytes;
        const grows = (used: Capacity, limit: number): boolean =>
          addedBytes <= 0 || used.permits === 1 || used.bytes + addedBytes <= limit;
        if (!grows(process, all.bytes - reservedBytes)) return false;
        if (!grows(account, limitOf(account, ownLimit).bytes)) return false;
        bytes = newBytes;
        add(0, addedBytes);
        return true;
      },
      release() {
        if (isReleased) return;
        isReleased = true;
        add(-1, -bytes);
        if (account.permits === 0) accounts.delete(account_id);
      },
    };
  }

  function reject(request: PermitRequest): TurnlogError {
    const exhausted = findExhaustedScope(request);
    rejected[exhausted ?? 'process'] += 1;
    return capacityError(exhausted);
  }

  return {
    exhaustedScope: findExhaustedScope,
    forceAcquire: issue,
    acquire(request) {
      if (findExhaustedScope(request)) throw reject(request);
      return issue(request);
    },
    reject,
    activeCount: () => process.permits,
    usage: () => ({
      count: { limit: all.permits, used: process.permits },
      bytes: { limit: all.bytes, used: process.bytes },
      rejected,
    }),
  };
}

/**
 * Counts permits and bytes of the process and of each account. An account may use a share of what
 * the others leave free: half when it is alone, a third each for two accounts, and so on. A newly
 * active account therefore always finds capacity, however much the others use. The metrics of the
 * process show the pool under its name.
 */
export const createPermitPool = (name: string, all: Capacity, share?: Capacity): PermitPool =>
  registerResource(name, createUnregisteredPool(all, share));
