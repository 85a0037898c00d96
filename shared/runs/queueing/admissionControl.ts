import { createFairSemaphore } from '../../lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../limits.ts';
import { createPermitPool, type Permit, type Capacity } from '../../lib/concurrency/capacity.ts';
import type { AccountLimits } from '../../accounts/events.ts';

/** The capacity of a process for runs. */
interface AdmissionLimits {
  /** Total number of runs in flight and bytes of their prompts. */
  all: Capacity;
  /** The largest share for one account while no other account has runs. */
  share: Capacity;
}

/** Capacity held by a run, first while it waits and then while it is in flight. */
export interface RunPermit {
  /**
   * Waits for capacity for a prompt of `bytes`. Capacity that the run already has is released
   * first. Throws `rate_limited`, `overloaded` or the abort reason.
   */
  acquire(bytes: number, waitMs: number, signal: AbortSignal): Promise<void>;
  /** Changes the bytes of a run in flight; false if they are not available without waiting. */
  resize(bytes: number): boolean;
  /** Must be called when the run ends in any way. */
  release(): void;
}

export interface AdmissionControl {
  /** Adds a waiting run with an input of `bytes`. Throws `rate_limited` or `overloaded`. */
  enqueue(accountId: string, bytes: number, limits: AccountLimits): RunPermit;
  /** Number of runs in flight. */
  activeCount(): number;
  waitingCount(): number;
}

/**
 * Admits runs while the process and their accounts have capacity, in turn among accounts
 * (createFairSemaphore). The number and the bytes of waiting runs are limited as well, because they
 * keep their input in memory.
 */
export function createAdmissionControl({ all, share }: AdmissionLimits): AdmissionControl {
  const active = createFairSemaphore('runs', all, share);
  const waiting = createPermitPool('waiting_runs', {
    permits: LIMITS.run.waiting,
    bytes: all.bytes,
  });

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
