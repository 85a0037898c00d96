import { waitToBegin } from './pacedSteps.ts';

/** By owner and key: the last queued work in this process. */
const queues = new WeakMap<object, Map<string, Promise<void>>>();

/** True while work of the same owner and key runs or waits. */
export const hasWork = (owner: object, key: string): boolean =>
  queues.get(owner)?.has(key) === true;

/**
 * Runs work after all earlier work of the same owner and key, whether that succeeded or failed.
 * Rejects as the work does.
 */
export function runExclusive<Result>(
  owner: object,
  key: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const tails = queues.get(owner) ?? new Map<string, Promise<void>>();
  queues.set(owner, tails);
  const result = (tails.get(key) ?? Promise.resolve()).then(work);
  const settled = result
    .then(
      () => undefined,
      () => undefined,
    )
    .finally(() => {
      if (tails.get(key) === settled) tails.delete(key);
    });
  tails.set(key, settled);
  return result;
}

/**
 * Like runExclusive. Work that had to wait continues in the turn of its account: the end of earlier work
 * would otherwise let all of it run at once.
 */
export function runExclusiveFairly<Result>(
  { owner, key, account_id }: { owner: object; key: string; account_id: string },
  work: () => Promise<Result>,
): Promise<Result> {
  if (!hasWork(owner, key)) return runExclusive(owner, key, work);
  return runExclusive(owner, key, async () => {
    const turn = waitToBegin(account_id);
    if (turn) await turn;
    return work();
  });
}
