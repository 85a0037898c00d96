import { setTimeout as sleep } from 'node:timers/promises';
import { isTurnlogError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/logger.ts';

const STORE_PAUSE_MS = 1_000;

/** Does work of the start that needs a store, again and again while that is away. Errors: the work's own, the signal's reason. */
export async function onceStoreAnswers<Result>(
  work: () => Promise<Result>,
  logger: Logger,
  signal: AbortSignal,
): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isTurnlogError(error, 'store_unavailable') || !error.retriable) throw error;
      logger.warn({ err: error }, 'a store is away; the start goes on when it is back');
      await sleep(STORE_PAUSE_MS, undefined, { signal }).catch(() => {
        throw signal.reason;
      });
    }
  }
}
