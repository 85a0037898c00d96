import { createFairSemaphore } from '../../lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../limits.ts';
import { createPermitPool, type Permit, type Capacity } from '../../lib/concurrency/capacity.ts';
import type { AccountLimits } from '../../accounts/events.ts';

/** What runs of a process take up at the most. */
interface AdmissionBounds {
  /** Runs in flight, and bytes of their prompts. */
  all: Capacity;
  /** The most of them that are one account's, while it is alone. */
  share: Capacity;
}

/** A run that asks for its place. */
export interface Arrival {
  /**
   * Waits for a place for a prompt of so many bytes; gives back the one it has before. Errors:
   * `rate_limited`, `overloaded`, the signal's reason.
   */
  enter(bytes: number, waitMs: number, signal: AbortSignal): Promise<void>;
  /** Takes so many bytes in all; false where they are not to be had without a wait. */
  grow(bytes: number): boolean;
  /** To be called when the run is over, however it ended. */
  leave(): void;
}

export interface Admission {
  /**
   * The run is here, holds so many bytes and has no place yet. Errors: `rate_limited`,
   * `overloaded`.
   */
  arrive(accountId: string, bytes: number, limits: AccountLimits): Arrival;
  /** Runs that have a place. */
  inFlight(): number;
  /** Runs that have none yet. */
  waiting(): number;
}

/**
 * Lets runs in as far as the process and their accounts have room for them, the accounts in turn
 * (see createFairLine). Those without a place hold their input, so there is an end to them as well.
 */
export function createAdmission({ all, share }: AdmissionBounds): Admission {
  const line = createFairSemaphore(all, share);
  const hall = createPermitPool({ permits: LIMITS.run.waiting, bytes: all.bytes });

  return {
    arrive(account_id, held, { runs = Infinity, prompt_bytes = Infinity }) {
      const most: Capacity = { permits: runs, bytes: prompt_bytes };
      let waiting: Permit | undefined = hall.acquire({ account_id, bytes: held });
      let place: Permit | undefined;
      const leave = (): void => {
        waiting?.release();
        place?.release();
        waiting = place = undefined;
      };
      return {
        async enter(bytes, waitMs, signal) {
          leave();
          waiting = hall.acquire({ account_id, bytes });
          place = await line.acquire({ account_id, bytes, limit: most }, { waitMs, signal });
          waiting.release();
          waiting = undefined;
        },
        grow: (bytes) => place?.resize(bytes) ?? false,
        leave,
      };
    },
    inFlight: line.activeCount,
    waiting: hall.activeCount,
  };
}
