import { capacityError } from '../errors/capacityError.ts';

/** What a process has to give away, or the most of it that one account may have. */
export interface Capacity {
  permits: number;
  bytes: number;
}

/** Who wants a place, and how large. */
export interface PermitRequest {
  account_id: string;
  bytes: number;
  /** What the account may have at a time, where that is less than its share. */
  limit?: Capacity;
}

/** Whose room is taken up; undefined where there is room. */
export type ExhaustedScope = 'process' | 'account' | undefined;

export interface Permit {
  /**
   * Makes the place larger or smaller, when so many bytes are kept for somebody else. False, and
   * nothing changed, where there is no room.
   */
  resize(bytes: number, keptBytes?: number): boolean;
  /** Gives the place back; a second time changes nothing. */
  release(): void;
}

export interface PermitPool {
  /**
   * Whether there is room, when so many bytes are kept for somebody else. What is larger than all
   * room there is has its place alone.
   */
  exhaustedScope(asked: PermitRequest, keptBytes?: number): ExhaustedScope;
  /** Gives a place, whether there is room or not. */
  forceAcquire(asked: PermitRequest): Permit;
  /** Gives a place where there is room. Errors: `rate_limited` (the account), `overloaded`. */
  acquire(asked: PermitRequest): Permit;
  /** How many are given away. */
  activeCount(): number;
}

const UNLIMITED: Capacity = { permits: Infinity, bytes: Infinity };

const half = ({ permits: places, bytes }: Capacity): Capacity => ({
  permits: places / 2,
  bytes: bytes / 2,
});

const fits = (taken: Capacity, all: Capacity, bytes: number): boolean =>
  taken.permits === 0 || (taken.permits + 1 <= all.permits && taken.bytes + bytes <= all.bytes);

/**
 * Counts places and bytes given away, of the process and of each account. An account has its share
 * of what the others leave: a half where it is alone, a third each where there are two, and so on.
 * So there is room left for one who comes with nothing, however many others take all they can.
 */
export function createPermitPool(all: Capacity, share = half(all)): PermitPool {
  const process: Capacity = { permits: 0, bytes: 0 };
  const accounts = new Map<string, Capacity>();

  function mostOf(account: Capacity, most = UNLIMITED): Capacity {
    const of = (what: keyof Capacity): number => {
      const others = process[what] - account[what];
      return Math.min(most[what], share[what] * (1 - others / all[what]));
    };
    return { permits: of('permits'), bytes: of('bytes') };
  }

  function fullFor(
    { account_id, limit: most, bytes }: PermitRequest,
    keptBytes = 0,
  ): ExhaustedScope {
    const account = accounts.get(account_id);
    if (account && !fits(account, mostOf(account, most), bytes)) return 'account';
    const rest = { permits: all.permits, bytes: all.bytes - keptBytes };
    return fits(process, rest, bytes) ? undefined : 'process';
  }

  function take({ account_id, limit: most, bytes: first }: PermitRequest): Permit {
    let bytes = first;
    let left = false;
    const account = accounts.get(account_id) ?? { permits: 0, bytes: 0 };
    accounts.set(account_id, account);
    const add = (permits: number, more: number): void => {
      for (const taken of [process, account]) {
        taken.permits += permits;
        taken.bytes += more;
      }
    };
    add(1, bytes);
    return {
      resize(wanted, keptBytes = 0) {
        const more = wanted - bytes;
        const grows = (taken: Capacity, limit: number): boolean =>
          more <= 0 || taken.permits === 1 || taken.bytes + more <= limit;
        if (!grows(process, all.bytes - keptBytes)) return false;
        if (!grows(account, mostOf(account, most).bytes)) return false;
        bytes = wanted;
        add(0, more);
        return true;
      },
      release() {
        if (left) return;
        left = true;
        add(-1, -bytes);
        if (account.permits === 0) accounts.delete(account_id);
      },
    };
  }

  return {
    exhaustedScope: fullFor,
    forceAcquire: take,
    acquire(asked) {
      const full = fullFor(asked);
      if (full) throw capacityError(full);
      return take(asked);
    },
    activeCount: () => process.permits,
  };
}
