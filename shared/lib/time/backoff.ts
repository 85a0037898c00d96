import { sleep } from './sleep.ts';

/** Pauses after failures, in milliseconds: each is twice the one before, up to `longestMs`. */
interface BackoffSchedule {
  firstMs: number;
  longestMs: number;
  /** Multiplies each pause by a random number in this range, so that clients spread out. */
  spread?: readonly [least: number, most: number];
}

/** The pause after a failure that `failures` others preceded, in milliseconds. */
export const backoffMs = (
  { firstMs, longestMs, spread: [least, most] = [1, 1] }: BackoffSchedule,
  failures: number,
): number =>
  Math.min(longestMs, firstMs * 2 ** failures) * (least + Math.random() * (most - least));

/** The pauses between the attempts of one loop. */
interface Backoff {
  /** The pause after this failure, in milliseconds. */
  next(): number;
  /** Restarts with the first pause. */
  reset(): void;
}

export function createBackoff(schedule: BackoffSchedule): Backoff {
  let failures = 0;
  return {
    next() {
      failures += 1;
      return backoffMs(schedule, failures - 1);
    },
    reset: () => void (failures = 0),
  };
}

interface Retry {
  pauses: BackoffSchedule;
  /** Whether to retry after this error; `failures` counts from 1. */
  shouldRetry: (error: unknown, failures: number) => boolean;
  /** Ends a pause. */
  signal?: AbortSignal;
}

/**
 * Runs work until it succeeds, with pauses. Rejects with the last error, or with the abort reason.
 */
export async function retry<Result>(
  work: () => Promise<Result>,
  { pauses, shouldRetry, signal }: Retry,
): Promise<Result> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      if (!shouldRetry(error, failures)) throw error;
    }
    await sleep(backoffMs(pauses, failures - 1), signal);
  }
}
