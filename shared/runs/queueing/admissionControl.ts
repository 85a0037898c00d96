import type { Permit, Capacity } from '../../lib/concurrency/capacity.ts';
import type { MemoryLedger } from '../../lib/memory/ledger.ts';
import { LIMITS } from '../../limits.ts';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { AccountLimits } from '../../accounts/events.ts';

/** Capacity held by a run, first while it waits and then while it is in flight. */
export interface RunPermit {
  /** The largest prompt of the account: half of its share or own limit, so that tools have the rest. */
  largestPrompt: number;
  /**
   * Waits for capacity for a prompt of `bytes`. Capacity that the run already has is released
   * first. Throws `payload_too_large`, `rate_limited`, `overloaded` or the abort reason.
   */
  acquire(bytes: number, waitMs: number, signal: AbortSignal): Promise<void>;
  /** Counts the bytes of a waiting run. Throws `rate_limited` or `overloaded`. */
  hold(bytes: number): void;
  /** Changes the bytes of a run in flight unless it has as many; false as `resize`. */
  grow(bytes: number): boolean;
  /** Changes the bytes of a run in flight; false if they are not available without waiting. */
  resize(bytes: number): boolean;
  /** Counts a rejection: the run in flight gives up what the last `resize` did not grant. */
  countRejection(): void;
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

/** A prompt that the account could never have, however long it waits. */
export const promptTooLargeError = (largest: number): TurnlogError =>
  new TurnlogError(
    'payload_too_large',
    `The prompt is larger than the ${largest} bytes that a run of this account can have.`,
  );

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
      const largestPrompt = Math.min(
        LIMITS.run.promptBytes,
        memory.largestRequest('prompts', limit),
      );
      let waitingPermit: Permit | undefined = enqueueBytes(account_id, held);
      let activePermit: Permit | undefined;
      let activeBytes = 0;
      let heldBytes = held;
      const release = (): void => {
        waitingPermit?.release();
        activePermit?.release();
        waitingPermit = activePermit = undefined;
      };
      const hold = (bytes: number): void => {
        heldBytes = bytes;
        if (waitingPermit?.resize(bytes) === true) return;
        release();
        waitingPermit = enqueueBytes(account_id, bytes);
      };
      const resize = (bytes: number): boolean => {
        const isResized = activePermit?.resize(bytes) ?? false;
        if (isResized) activeBytes = bytes;
        return isResized;
      };
      return {
        largestPrompt,
        async acquire(bytes, waitMs, signal) {
          if (bytes > largestPrompt) throw promptTooLargeError(largestPrompt);
          if (activePermit) hold(heldBytes);
          const request = { account_id, purpose: 'prompts', bytes, limit } as const;
          activePermit = await memory.reserve(request, { waitMs, signal });
          activeBytes = bytes;
          waitingPermit?.release();
          waitingPermit = undefined;
        },
        hold,
        grow: (bytes) => bytes <= activeBytes || resize(bytes),
        resize,
        countRejection: () => activePermit?.countRejection(),
        release,
      };
    },
    activeCount: () => memory.usage('prompts').reservations,
    waitingCount: () => memory.usage('waitingRuns').reservations,
  };
}
