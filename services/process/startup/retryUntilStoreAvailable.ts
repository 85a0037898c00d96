import { retry } from '../../../shared/lib/time/backoff.ts';
import { isLogUnavailable } from '../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../shared/lib/logger.ts';

const PAUSES = { firstMs: 1_000, longestMs: 1_000 };

const describeError = ({ message, cause }: Error): string =>
  cause instanceof Error && cause.message !== '' ? `${message} (${cause.message})` : message;

/**
 * Does work of the start that needs a store, again and again while that is away. What it waits for
 * is said once, and again when that changes. Errors: the work's own, the signal's reason.
 */
export function retryUntilStoreAvailable<Result>(
  work: () => Promise<Result>,
  logger: Logger,
  signal: AbortSignal,
): Promise<Result> {
  let told: string | undefined;
  function again(error: unknown): boolean {
    if (!isLogUnavailable(error) || !error.retriable) return false;
    const reason = describeError(error);
    if (reason !== told)
      logger.warn({ reason }, 'a store is away; the start goes on when it is back');
    told = reason;
    return true;
  }
  return retry(work, { pauses: PAUSES, again, signal });
}
