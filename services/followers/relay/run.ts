import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { watchAttempt, type Attempt } from './attempt.ts';
import { beforeTakeOver } from './beforeTakeOver.ts';
import { publishUntilFenced } from './publish.ts';
import type { Relay } from './relay.ts';
import { createRetries } from './retries.ts';
import { standBy } from './standBy.ts';

/** One sentence for the health; what is no error of ours may quote what is nobody's business. */
const reasonOf = (error: unknown): string =>
  isTurnlogError(error) ? error.message : 'It failed; the log says why.';

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

  /** Resolves after the pause; another relay may have got on meanwhile. */
  async function pauseAfter(error: unknown, attempt: Attempt): Promise<void> {
    onState(standingBy ? 'standing_by' : 'retrying', reasonOf(error));
    const { ms, stepsBack } = retries.after(error, attempt);
    const before = stepsBack ? await activityOf(relay) : undefined;
    await retries.pauseFor(ms, error);
    if (signal.aborted || before === undefined) return;
    const now = await activityOf(relay);
    if (now !== undefined && now !== before) giveWay();
  }

  function giveWay(): void {
    standingBy = true;
    onState('standing_by');
    logger.info({ position: lag.position() }, 'Another relay has taken over; this one stands by');
  }

  while (!signal.aborted) {
    const { attempt, watched } = watchAttempt(relay, failed);
    try {
      if (standingBy) await standBy(relay);
      standingBy = false;
      await beforeTakeOver(relay);
      await publishUntilFenced(watched);
    } catch (error) {
      if (signal.aborted) return;
      failed = !isTurnlogError(error, 'publisher_fenced');
      if (failed) await pauseAfter(error, attempt);
      else giveWay();
    }
  }
}
