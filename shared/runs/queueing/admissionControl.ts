import { createFairSemaphore } from '../../lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../limits.ts';
import { createPermitPool, type Permit, type Capacity } from '../../lib/concurrency/capacity.ts';
import type { AccountLimits } from '../../accounts/events.ts';

/** Capacity for the runs of a process. */
interface AdmissionLimits {
  /** Runs in flight, and bytes of their prompts. */
  all: Capacity;
  /** The largest part of it that one account gets, while no other account has runs. */
  share: Capacity;
}

/** Capacity that a run holds: first for waiting, then for being in flight. */
export interface RunPermit {
  /**
   * Waits for capacity for a prompt of `bytes`, after releasing capacity that the run has. Throws
   * `rate_limited`, `overloaded` or the abort reason.
   */
  acquire(bytes: number, waitMs: number, signal: AbortSignal): Promise<void>;
  /** Changes the bytes of a run in flight; false where they are not available without waiting. */
  resize(bytes: number): boolean;
  /** To be called when the run is over, however it ended. */
  release(): void;
}

export interface AdmissionControl {
  /** Adds a waiting run that holds `bytes`. Throws `rate_limited` or `overloaded`. */
  enqueue(accountId: string, bytes: number, limits: AccountLimits): RunPermit;
  /** Runs in flight. */
  activeCount(): number;
  waitingCount(): number;
}

/**
 * Admits runs while the process and their accounts have capacity, taking turns between accounts
 * (createFairSemaphore). Waiting runs hold their input, so their number and bytes are limited too.
 */
export function createAdmissionControl({ all, share }: AdmissionLimits): AdmissionControl {
  const active = createFairSemaphore(all, share);
  const waiting = createPermitPool({ permits: LIMITS.run.waiting, bytes: all.bytes });

  return {
    enqueue(account_id, held, { runs = Infinity, prompt_bytes = Infinity }) {
      const limit: Capacity = { permits: runs, bytes: prompt_bytes };
      let waitingPermit: Permit | undefined = waiting.acquire({ account_id, bytes: held });
      let activePermit: Permit | undefined;
      const release = (): void => {
        waitingPermit?.release();
        activePermit?.release();
        waitingPermit = activePermit = undefined;
      };
      return {
        async acquire(bytes, waitMs, signal) {
          if (waitingPermit?.resize(bytes) !== true) {
            release();
            waitingPermit = waiting.acquire({ account_id, bytes });
          }
          activePermit = await active.acquire({ account_id, bytes, limit }, { waitMs, signal });
          waitingPermit.release();
          waitingPermit = undefined;
        },
        resize: (bytes) => activePermit?.resize(bytes) ?? false,
        release,
      };
    },
    activeCount: active.activeCount,
    waitingCount: waiting.activeCount,
  };
}
