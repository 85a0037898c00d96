import { createFairSemaphore } from '../../lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../limits.ts';
import { createPermitPool, type Permit, type Capacity } from '../../lib/concurrency/capacity.ts';
import type { AccountLimits } from '../../accounts/events.ts';

/** What runs of a process take up at the most. */
interface AdmissionLimits {
  /** Runs in flight, and bytes of their prompts. */
  all: Capacity;
  /** The most of them that are one account's, while it is alone. */
  share: Capacity;
}

/** A run that asks for its place. */
export interface RunPermit {
  /**
   * Waits for a place for a prompt of so many bytes; gives back the one it has before. Errors:
   * `rate_limited`, `overloaded`, the signal's reason.
   */
  acquire(bytes: number, waitMs: number, signal: AbortSignal): Promise<void>;
  /** Takes so many bytes in all; false where they are not to be had without a wait. */
  resize(bytes: number): boolean;
  /** To be called when the run is over, however it ended. */
  release(): void;
}

export interface AdmissionControl {
  /**
   * The run is here, holds so many bytes and has no place yet. Errors: `rate_limited`,
   * `overloaded`.
   */
  enqueue(accountId: string, bytes: number, limits: AccountLimits): RunPermit;
  /** Runs that have a place. */
  activeCount(): number;
  /** Runs that have none yet. */
  waitingCount(): number;
}

/**
 * Lets runs in as far as the process and their accounts have room for them, the accounts in turn
 * (see createFairLine). Those without a place hold their input, so there is an end to them as well.
 */
export function createAdmissionControl({ all, share }: AdmissionLimits): AdmissionControl {
  const line = createFairSemaphore(all, share);
  const hall = createPermitPool({ permits: LIMITS.run.waiting, bytes: all.bytes });

  return {
    enqueue(account_id, held, { runs = Infinity, prompt_bytes = Infinity }) {
      const most: Capacity = { permits: runs, bytes: prompt_bytes };
      let waiting: Permit | undefined = hall.acquire({ account_id, bytes: held });
      let place: Permit | undefined;
      const leave = (): void => {
        waiting?.release();
        place?.release();
        waiting = place = undefined;
      };
      return {
        async acquire(bytes, waitMs, signal) {
          leave();
          waiting = hall.acquire({ account_id, bytes });
          place = await line.acquire({ account_id, bytes, limit: most }, { waitMs, signal });
          waiting.release();
          waiting = undefined;
        },
        resize: (bytes) => place?.resize(bytes) ?? false,
        release: leave,
      };
    },
    activeCount: line.activeCount,
    waitingCount: hall.activeCount,
  };
}
