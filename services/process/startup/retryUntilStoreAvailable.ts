import { retry } from '../../../shared/lib/time/backoff.ts';
import { isLogUnavailable } from '../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../shared/lib/logger.ts';

const PAUSES = { firstMs: 1_000, longestMs: 1_000 };

/** The message, with that of the cause unless it quotes it. */
const describeError = ({ message, cause }: Error): string =>
  cause instanceof Error && !message.includes(cause.message)
    ? `${message} (${cause.message})`
    : message;

/**
 * Retries work of the start while a store is unavailable. The reason is logged once, and again when
 * it changes.
 */
export function retryUntilStoreAvailable<Result>(
  work: () => Promise<Result>,
  logger: Logger,
  signal: AbortSignal,
): Promise<Result> {
  let loggedReason: string | undefined;
  function shouldRetry(error: unknown): boolean {
    if (!isLogUnavailable(error) || !error.retriable) return false;
    const reason = describeError(error);
    if (reason !== loggedReason)
      logger.warn({ reason }, 'a store is unavailable; the start continues when it is back');
    loggedReason = reason;
    return true;
  }
  return retry(work, { pauses: PAUSES, shouldRetry, signal });
}
