import { LRUCache } from 'lru-cache';
import { createFairSemaphore } from './fairSemaphore.ts';
import type { AcquireOptions } from './acquireWithTimeout.ts';

interface LaneOptions {
  /** Concurrent tasks; two or more. */
  permits: number;
  /** The time from which a task counts as slow. */
  slowMs: number;
  /** How long an account counts as slow after a slow task. */
  slowForMs: number;
}

export interface LanePermit {
  /** Whether the account has had a slow task lately. */
  isSlow: boolean;
  /**
   * Moves a task that turns out to be slow while it runs. False if it must end and acquire another
   * permit, because a slow task of another account is running and other accounts wait.
   */
  moveToSlow(): boolean;
  /** Releases the permit of a task that took `ms` milliseconds. */
  release(ms: number): void;
}

interface FairLanes {
  /** Waits for a permit. Throws `rate_limited`, `overloaded` or the abort reason. */
  acquire(
    accountId: string,
    bounds: Pick<AcquireOptions, 'waitMs' | 'signal'>,
  ): Promise<LanePermit>;
}

/** Accounts that count as slow; beyond this number the least recent one is forgotten. */
const SLOW_ACCOUNTS = 1_000;

/**
 * Permits for tasks whose duration is unknown in advance and which can't be interrupted by others.
 * Accounts take turns, and one account runs one task at a time. All accounts with slow tasks
 * together leave one permit to the others, so that a newly active account waits for quick tasks
 * only; the first slow task of an account is moved while it runs. The metrics of the process show the
 * lanes under their name.
 */
export function createFairLanes(
  name: string,
  { permits, slowMs, slowForMs }: LaneOptions,
): FairLanes {
  const one = { permits: 1, bytes: Infinity };
  const tasks = createFairSemaphore(name, { permits, bytes: Infinity }, one);
  const slowTasks = createFairSemaphore(
    `${name}_slow`,
    { permits: permits - 1, bytes: Infinity },
    one,
  );
  const slowAccounts = new LRUCache<string, true>({ max: SLOW_ACCOUNTS, ttl: slowForMs });

  return {
    async acquire(account_id, { waitMs, signal }) {
      const request = { account_id };
      const deadline = performance.now() + waitMs;
      const rest = () => ({ waitMs: Math.max(0, deadline - performance.now()), signal });
      for (;;) {
        const isSlow = slowAccounts.has(account_id);
        using stack = new DisposableStack();
        if (isSlow) stack.use(await slowTasks.acquire(request, rest()));
        stack.use(await tasks.acquire(request, rest()));
        // A task that was slow may have ended during the wait.
        if (!isSlow && slowAccounts.has(account_id)) continue;
        const held = stack.move();
        let isMoved = isSlow;
        return {
          isSlow,
          moveToSlow() {
            if (isMoved) return true;
            const lane = slowTasks.tryAcquire(request);
            if (!lane) return !tasks.hasWaiters();
            isMoved = true;
            held.use(lane);
            return true;
          },
          release(ms) {
            if (ms > slowMs) slowAccounts.set(account_id, true);
            held.dispose();
          },
        };
      }
    },
  };
}
