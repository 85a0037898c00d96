import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { leadUntilAborted } from '../../../shared/lib/concurrency/leaderTask.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';
import { serveAsActive, type Standing } from './serveAsActive.ts';

const PAUSE_MS = 500;
/** How long the log may take for an answer. */
const ANSWER_LIMIT_MS = 2_000;
/**
 * How long a projector that has stood still leaves the place to others, who ask for it four times a
 * second: longer each time, until it gets on again.
 */
const RESTS = { firstMs: 2_000, longestMs: 10_000 };

/**
 * Resolves once the log answers, or the signal aborts: a projector that can't read the log must not
 * keep another one from becoming the active one.
 */
async function untilLogAnswers(log: Pick<EventLog, 'head'>, signal: AbortSignal): Promise<void> {
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

/**
 * Projects whenever this process is the active projector, and stands by when it is not, until the
 * signal aborts. A projector that loses its place goes back to standing by, and one that stands
 * still, or whose log is another one, gives it up and says so once until it gets on again: another
 * may read the right log. None ever ends by itself. Only who can read the log asks for the place:
 * where nobody can, nobody has it.
 */
export async function projectWhenActive(standing: Standing): Promise<void> {
  const { becomeActive, onState, signal, logger, log } = standing;
  const rests = createBackoff(RESTS);
  let stoodStill = false;
  let saidOfLog: string | undefined;
  const onLogChanged: Standing['onLogChanged'] = async (reason) => {
    await standing.onLogChanged?.(reason);
    saidOfLog = reason;
    // The right log may be put back: it is looked at as often as by one that has its place.
    rests.reset();
  };
  const onProgress: Standing['onProgress'] = (batch) => {
    stoodStill = false;
    rests.reset();
    standing.onProgress(batch);
  };
  await leadUntilAborted({
    async acquireLeadership() {
      onState('standing_by');
      await untilLogAnswers(log, signal);
      return becomeActive(signal);
    },
    async lead(store) {
      onState('active');
      if (!stoodStill) logger.info({}, 'This projector is the active one');
      const why = await serveAsActive(store, { ...standing, saidOfLog, onLogChanged, onProgress });
      if (why === undefined) {
        if (!signal.aborted) logger.warn({}, 'This projector has lost its place and stands by');
        return 0;
      }
      if (!stoodStill) logger.warn({}, `This projector gives up its place: ${why}`);
      stoodStill = true;
      onState('standing_by');
      return rests.next();
    },
    onFailure(error) {
      logger.warn(
        { err: error, retry_in_ms: PAUSE_MS },
        'This projector could not become active and tries again',
      );
      return PAUSE_MS;
    },
    signal,
  });
}
