import { retry } from '../../shared/backOff.ts';
import { isLogAway } from '../../shared/errors.ts';
import type { Logger } from '../../shared/logger.ts';

const PAUSES = { firstMs: 1_000, longestMs: 1_000 };

/**
 * Does work of the start that needs a store, again and again while that is away. Errors: the work's
 * own, the signal's reason.
 */
export function onceStoreAnswers<Result>(
  work: () => Promise<Result>,
  logger: Logger,
  signal: AbortSignal,
): Promise<Result> {
  function again(error: unknown): boolean {
    if (!isLogAway(error) || !error.retriable) return false;
    logger.warn({ err: error }, 'a store is away; the start goes on when it is back');
    return true;
  }
  return retry(work, { pauses: PAUSES, again, signal });
}
