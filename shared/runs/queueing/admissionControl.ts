import type { Permit, Capacity } from '../../lib/concurrency/capacity.ts';
import type { MemoryLedger } from '../../lib/memory/ledger.ts';
import type { AccountLimits } from '../../accounts/events.ts';

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
 * Admits runs while the process and their accounts have capacity, in turn among accounts. The
 * number and the bytes of waiting runs are limited as well, because they keep their input in
 * memory.
 */
export function createAdmissionControl(memory: MemoryLedger): AdmissionControl {
  const enqueueBytes = (account_id: string, bytes: number): Permit =>
    memory.reserveNow({ account_id, purpose: 'waitingRuns', bytes });

  return {
    enqueue(account_id, held, { runs = Infinity, prompt_bytes = Infinity }) {
      const limit: Capacity = { permits: runs, bytes: prompt_bytes };
      let waitingPermit: Permit | undefined = enqueueBytes(account_id, held);
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
            waitingPermit = enqueueBytes(account_id, bytes);
          }
          const request = { account_id, purpose: 'prompts', bytes, limit } as const;
          activePermit = await memory.reserve(request, { waitMs, signal });
          waitingPermit.release();
          waitingPermit = undefined;
        },
        resize: (bytes) => activePermit?.resize(bytes) ?? false,
        release,
      };
    },
    activeCount: () => memory.usage('prompts').reservations,
    waitingCount: () => memory.usage('waitingRuns').reservations,
  };
}
