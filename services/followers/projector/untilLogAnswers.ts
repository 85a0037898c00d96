import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';

/** How long one answer is waited for. */
const ANSWER_LIMIT_MS = 2_000;
const PAUSE_MS = 500;

/**
 * Resolves once the log has said where it ends, or the signal aborts: a projector that can't read
 * the log is not to keep another one from being the active one.
 */
export async function untilLogAnswers(
  log: Pick<EventLog, 'head'>,
  signal: AbortSignal,
): Promise<void> {
  const answers = (): Promise<boolean> =>
    log.head().then(
      () => true,
      () => false,
    );
  while (!signal.aborted) {
    const tooLate = sleepUntilAborted(ANSWER_LIMIT_MS, { signal }).then(() => false);
    if (await Promise.race([answers(), tooLate])) return;
    await sleepUntilAborted(PAUSE_MS, { signal });
  }
}
