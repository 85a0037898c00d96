import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { leadUntilAborted } from '../../../shared/lib/concurrency/leaderTask.ts';
import { publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import { watchAttempt } from './attempt.ts';
import { requireSafeTakeOver, standBy } from './leadership.ts';
import { publishUntilFenced } from './publish.ts';
import type { Relay } from './relay.ts';
import { createRetries } from './retries.ts';

/** The text of the publisher's activity; undefined where that can't be had now. */
const activityOf = ({ publisher }: Relay): Promise<string | undefined> =>
  publisher.activity().catch(() => undefined);

/**
 * Publishes every event of the log in order, first what is there, then live, until the signal
 * aborts. A failure is logged and followed by a pause, from 0.1 s doubling to 5 s, and by going on
 * from the checkpoint; nothing is left out. Where only an operator can help the pauses are from 5 s
 * to a minute. Fenced by another relay, it stands by until that one no longer gets on. A relay that
 * takes over and gets nowhere steps back for longer than another one needs to take over, and then
 * stands by if that one gets on.
 */
export async function runRelay(relay: Relay): Promise<void> {
  const { signal, logger, lag, onState } = relay;
  const retries = createRetries(relay);
  let standingBy = false;
  let failed = false;
  let current = watchAttempt(relay, failed);
  /** Set while the relay steps back, to see whether another one gets on meanwhile. */
  let activityBefore: string | undefined;

  function beginStandBy(): void {
    standingBy = true;
    onState('standing_by');
    logger.info({ position: lag.position() }, 'Another relay has taken over; this one stands by');
  }

  /** Another relay may have got on while this one stepped back. */
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
      current = watchAttempt(relay, failed);
      if (standingBy) await standBy(relay);
      standingBy = false;
      await requireSafeTakeOver(relay);
      const publication = await current.watched.publisher.takeOver();
      // Another relay fences this one: its next transaction fails.
      return { ...publication, lost: new AbortController().signal };
    },
    async lead(publication) {
      await publishUntilFenced(current.watched, publication);
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
      const { pauseMs, stepsBack } = retries.after(error, current.attempt);
      if (stepsBack) activityBefore = await activityOf(relay);
      return pauseMs;
    },
    signal,
  });
}
