import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { leadUntilAborted } from '../../../shared/lib/concurrency/leaderTask.ts';
import { publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import { watchAttempt } from './attempt.ts';
import { requireSafeTakeOver, standBy } from './leadership.ts';
import { publishUntilFenced } from './publish.ts';
import type { Relay } from './relay.ts';
import { createRetryPolicy } from './retries.ts';

/** The text of the publisher's activity; undefined while it can't be read. */
const activityOf = ({ publisher }: Relay): Promise<string | undefined> =>
  publisher.activity().catch(() => undefined);

/**
 * Publishes every event of the log in order, first the existing ones, then new ones, until the signal
 * aborts. A failure is logged; after a pause, from 0.1 s doubling to 5 s, the relay resumes from the
 * checkpoint, so no event is skipped. Failures that need an operator have pauses from 5 s to a minute.
 * Fenced by another relay, it stands by until that relay stops making progress. A relay that takes over
 * without making progress steps back for longer than another relay needs to take over, and then stands
 * by if that one makes progress.
 */
export async function runRelay(relay: Relay): Promise<void> {
  const { signal, logger, lag, onState } = relay;
  const retryPolicy = createRetryPolicy(relay);
  let standingBy = false;
  let failed = false;
  let attempt = watchAttempt(relay, failed);
  /** Set while the relay steps back, to see whether another relay makes progress meanwhile. */
  let activityBefore: string | undefined;

  function beginStandBy(): void {
    standingBy = true;
    onState('standing_by');
    logger.info({ position: lag.position() }, 'Another relay has taken over; this one stands by');
  }

  /** Stands by if another relay has made progress while this one stepped back. */
  async function standByIfOvertaken(): Promise<void> {
    const before = activityBefore;
    activityBefore = undefined;
    if (before === undefined) return;
    const now = await activityOf(relay);
    if (now !== undefined && now !== before) beginStandBy();
  }

  await leadUntilAborted({
    async acquireLeadership() {
      await standByIfOvertaken();
      attempt = watchAttempt(relay, failed);
      if (standingBy) await standBy(relay);
      standingBy = false;
      await requireSafeTakeOver(relay);
      const publication = await attempt.watched.publisher.takeOver();
      // Another relay fences this one: its next transaction fails.
      return { ...publication, lost: new AbortController().signal };
    },
    async lead(publication) {
      await publishUntilFenced(attempt.watched, publication);
      return 0;
    },
    async onFailure(error) {
      if (signal.aborted) return 0;
      failed = !isTurnlogError(error, 'publisher_fenced');
      if (!failed) {
        beginStandBy();
        return 0;
      }
      onState(standingBy ? 'standing_by' : 'retrying', publicReason(error));
      const { pauseMs, stepsBack } = retryPolicy.onFailure(error, attempt.attempt);
      if (stepsBack) activityBefore = await activityOf(relay);
      return pauseMs;
    },
    signal,
  });
}
