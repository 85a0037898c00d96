import { leadUntilAborted } from '../../../shared/lib/concurrency/leaderTask.ts';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';
import { serveAsActive, type ActiveProjector } from './serveAsActive.ts';

const PAUSE_MS = 500;
/** How long the log may take to respond. */
const ANSWER_LIMIT_MS = 2_000;
/**
 * How long a projector that was stuck leaves leadership to others, which try to acquire it four times
 * a second. The pause grows until the projector makes progress again.
 */
const RESTS = { firstMs: 2_000, longestMs: 10_000 };

/**
 * Resolves once the log responds, or the signal aborts: a projector that can't read the log must not
 * keep another projector from becoming active.
 */
async function waitUntilLogResponds(
  log: Pick<EventLog, 'head'>,
  signal: AbortSignal,
): Promise<void> {
  const responds = (): Promise<boolean> =>
    log.head().then(
      () => true,
      () => false,
    );
  while (!signal.aborted) {
    const timedOut = sleepUntilAborted(ANSWER_LIMIT_MS, { signal }).then(() => false);
    if (await Promise.race([responds(), timedOut])) return;
    await sleepUntilAborted(PAUSE_MS, { signal });
  }
}

/**
 * Projects while this process is the active projector, and stands by otherwise, until the signal
 * aborts. A projector that loses leadership stands by again. A projector that is stuck, or whose log
 * is not the log of the read models, gives up leadership, because another projector may read the right
 * log. This is logged once until it makes progress again.
 */
export async function projectWhenActive(projector: ActiveProjector): Promise<void> {
  const { acquireLeadership, onState, signal, logger, log } = projector;
  const rests = createBackoff(RESTS);
  let wasStuck = false;
  let reportedReason: string | undefined;
  const onLogChanged: ActiveProjector['onLogChanged'] = async (reason) => {
    await projector.onLogChanged?.(reason);
    reportedReason = reason;
    // The right log may be put back, so it is checked as often as by an active projector.
    rests.reset();
  };
  const onProgress: ActiveProjector['onProgress'] = (batch) => {
    wasStuck = false;
    rests.reset();
    projector.onProgress(batch);
  };
  await leadUntilAborted({
    async acquireLeadership() {
      onState('standing_by');
      await waitUntilLogResponds(log, signal);
      return acquireLeadership(signal);
    },
    async lead(store) {
      onState('active');
      if (!wasStuck) logger.info({}, 'This projector is the active one');
      const yieldReason = await serveAsActive(store, {
        ...projector,
        reportedReason,
        onLogChanged,
        onProgress,
      });
      if (yieldReason === undefined) {
        if (!signal.aborted) logger.warn({}, 'This projector has lost leadership and stands by');
        return 0;
      }
      if (!wasStuck) logger.warn({}, `This projector gives up leadership: ${yieldReason}`);
      wasStuck = true;
      onState('standing_by');
      return rests.next();
    },
    onFailure(error) {
      logger.warn(
        { err: error, retry_in_ms: PAUSE_MS },
        'This projector could not become active; retrying',
      );
      return PAUSE_MS;
    },
    signal,
  });
}
