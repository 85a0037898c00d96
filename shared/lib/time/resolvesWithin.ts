import { setTimeout as sleep } from 'node:timers/promises';

/**
 * True when `work` fulfils within the time, in milliseconds; false when it takes longer, and goes
 * on. Rejects when `work` does in that time. With `ref: false` the wait alone does not keep the
 * process alive.
 */
export async function resolvesWithin(
  work: Promise<unknown>,
  milliseconds: number,
  { ref = true }: { ref?: boolean } = {},
): Promise<boolean> {
  const limit = new AbortController();
  const tooLate = sleep(milliseconds, false, { signal: limit.signal, ref }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), tooLate]);
  } finally {
    limit.abort();
  }
}
