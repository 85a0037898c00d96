import { sleep } from './sleep.ts';

/** How long to wait after failures: twice as long after each, up to a bound. In milliseconds. */
interface BackoffSchedule {
  firstMs: number;
  longestMs: number;
  /** Each pause is multiplied by a random number between these: clients don't come in step. */
  spread?: readonly [least: number, most: number];
}

/** The pause after a failure that so many others came before, in milliseconds. */
export const backoffMs = (
  { firstMs, longestMs, spread: [least, most] = [1, 1] }: BackoffSchedule,
  failures: number,
): number =>
  Math.min(longestMs, firstMs * 2 ** failures) * (least + Math.random() * (most - least));

/** The pauses between the tries of one loop. */
interface Backoff {
  /** How long the pause after this failure is, in milliseconds; the next one is longer. */
  next(): number;
  /** Begins with the first pause again. */
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
  /** Whether to try again after this error, the one of that number (from 1). */
  again: (error: unknown, failures: number) => boolean;
  /** Ends a pause. */
  signal?: AbortSignal;
}

/** Does the work until it succeeds, with pauses. Errors: the work's, the signal's reason. */
export async function retry<Result>(
  work: () => Promise<Result>,
  { pauses, again, signal }: Retry,
): Promise<Result> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      if (!again(error, failures)) throw error;
    }
    await sleep(backoffMs(pauses, failures - 1), signal);
  }
}
