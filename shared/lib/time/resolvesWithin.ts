import { setTimeout as sleep } from 'node:timers/promises';

/**
 * True when `work` fulfills within the time in milliseconds; false when it takes longer, and
 * continues. Rejects when `work` rejects within that time. With `ref: false` the timer does not
 * keep the process alive.
 */
export async function resolvesWithin(
  work: Promise<unknown>,
  milliseconds: number,
  { ref = true }: { ref?: boolean } = {},
): Promise<boolean> {
  const limit = new AbortController();
  const timeout = sleep(milliseconds, false, { signal: limit.signal, ref }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), timeout]);
  } finally {
    limit.abort();
  }
}
