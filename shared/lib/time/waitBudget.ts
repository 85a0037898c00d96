import { AsyncLocalStorage } from 'node:async_hooks';

/** How long the calls of a task may wait in all for a service that is unavailable. */
interface WaitBudget {
  readonly limitMs: number;
  leftMs: number;
  /** The end of the wait that was counted last, by `performance.now()`. */
  countedUntil: number;
  isLimited: () => boolean;
}

const budgets = new AsyncLocalStorage<WaitBudget>();

const current = (): WaitBudget | undefined => {
  const budget = budgets.getStore();
  return budget?.isLimited() ? budget : undefined;
};

/**
 * Runs a task whose calls together wait at most `limitMs` milliseconds, as long as `isLimited`
 * returns true: what a request does after its response has begun is not limited any more.
 */
export const withWaitBudget = <Result>(
  limitMs: number,
  isLimited: () => boolean,
  task: () => Result,
): Result => budgets.run({ limitMs, leftMs: limitMs, countedUntil: -Infinity, isLimited }, task);

/**
 * Lets the calls of the task wait for the whole limit again: the service has just done its part, so
 * that earlier waits were not in vain.
 */
export function renewWaitBudget(): void {
  const budget = budgets.getStore();
  if (budget) budget.leftMs = budget.limitMs;
}

/** How long the next call may wait, in milliseconds: `limitMs`, or less if the task has less left. */
export const waitLimitMs = (limitMs: number): number =>
  Math.max(0, Math.min(limitMs, current()?.leftMs ?? limitMs));

/** Counts the wait since `startedAt` (`performance.now()`); what calls wait side by side, once. */
export function countWait(startedAt: number): void {
  const budget = current();
  if (!budget) return;
  const now = performance.now();
  budget.leftMs -= now - Math.max(startedAt, budget.countedUntil);
  budget.countedUntil = now;
}
