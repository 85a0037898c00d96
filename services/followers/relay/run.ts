import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { withGapCheck } from '../../../shared/eventlog/following/gapCheck.ts';
import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { leadUntilAborted } from '../../../shared/lib/concurrency/leaderTask.ts';
import { publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import { watchAttempt } from './attempt.ts';
import { publishUntilFenced } from './publish.ts';
import type { Relay } from './relay.ts';
import { createRetryPolicy } from './retries.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import { wasRestored } from './logErrors.ts';

/** Polls of the active relay during the take-over time. */
const POLLS = 10;
/** Standby relays wait for different times, by up to this fraction. */
const SPREAD = 0.2;
/** The most take-over times that a standby relay waits. */
const MAX_PATIENCE = 16;

/**
 * Resolves when the active relay has made no progress for `silenceMs`, spread at random: it neither
 * published nor sent a heartbeat. Taking over does not count as progress.
 */
async function standBy(
  { publisher, takeOverMs, signal }: Pick<Relay, 'publisher' | 'takeOverMs' | 'signal'>,
  leastSilenceMs: number,
): Promise<void> {
  const silenceMs = leastSilenceMs * (1 + Math.random() * SPREAD);
  let activity = await publisher.activity();
  for (let since = performance.now(); performance.now() - since < silenceMs;) {
    await sleep(takeOverMs / POLLS, signal);
    const latest = await publisher.activity();
    if (latest !== activity) since = performance.now();
    activity = latest;
  }
}

/**
 * Checks what can be checked without fencing the active relay, so that a relay that could not publish
 * does not disturb it. Throws `configuration_invalid` where published messages are gone, and
 * `log_changed` where the log does not hold the checkpoint.
 */
async function requireSafeTakeOver({
  log,
  publisher,
  startAfter,
  startIsStated,
}: Pick<Relay, 'log' | 'publisher' | 'startAfter' | 'startIsStated'>): Promise<void> {
  const checkpoint = await publisher.checkpoint();
  const lossReason = await publisher.lost();
  const isLossAccepted = startIsStated && (!checkpoint || checkpoint.position === startAfter);
  if (lossReason !== undefined && !isLossAccepted)
    throw new TurnlogError(
      'configuration_invalid',
      checkpoint
        ? `${lossReason} Nothing is published until you choose: give the relay new names (topics, checkpoint topic, transactional id), and it publishes everything there; or publish the missing messages into a separate topic with \`relay replay\`, set KAFKA_START_AFTER=${checkpoint.position} and restart the relay, which then continues without them.`
        : `${lossReason} Nothing is published until you state where to begin, because consumers would otherwise receive everything again: set KAFKA_START_AFTER to the position after the last event that was published (\`ce_position\`), or to \`beginning\`, or give the relay new names (topics, checkpoint topic, transactional id); then restart it.`,
    );
  await wasRestored(log, checkpoint);
}

/** The text of the publisher's activity; undefined while it can't be read. */
const activityOf = ({ publisher }: Relay): Promise<string | undefined> =>
  publisher.activity().catch(() => undefined);

/**
 * Publishes every event of the log in order, first the existing ones, then new ones, until the signal
 * aborts. A failure is logged; after a pause, from 0.1 s doubling to 5 s, the relay resumes from the
 * checkpoint, so no event is skipped. Failures that need an operator have pauses from 5 s to a minute.
 * Fenced by another relay, it stands by until that relay stops making progress. Fenced before it could
 * publish, it waits twice as long as the last time: where taking over takes longer than the take-over
 * time, relays would otherwise fence one another repeatedly, and none would publish. A relay that takes over
 * without making progress steps back for longer than another relay needs to take over, and then stands
 * by if that one makes progress.
 */
export async function runRelay(options: Relay): Promise<void> {
  const relay: Relay = { ...options, log: withGapCheck(options.log) };
  const { signal, logger, lag, onState } = relay;
  const retryPolicy = createRetryPolicy(relay);
  const patience = createBackoff({
    firstMs: relay.takeOverMs,
    longestMs: MAX_PATIENCE * relay.takeOverMs,
  });
  let standingBy = false;
  /** How long the active relay must make no progress before this one, standing by, takes over. */
  let patienceMs = relay.takeOverMs;
  let failed = false;
  let attempt = watchAttempt(relay, failed);
  /** Set while the relay steps back, to see whether another relay makes progress meanwhile. */
  let activityBefore: string | undefined;

  /** A fenced relay may notice late, so only the time up to its last success counts. */
  const hadFullTerm = (): boolean =>
    attempt.attempt.published || attempt.attempt.ledMs > MAX_PATIENCE * relay.takeOverMs;

  function beginStandBy(): void {
    standingBy = true;
    patienceMs = patience.next();
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
      if (standingBy) await standBy(relay, patienceMs);
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
      if (hadFullTerm()) patience.reset();
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
