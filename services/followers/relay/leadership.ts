import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import { wasRestored } from './logErrors.ts';
import type { Relay } from './relay.ts';

/** Polls of the active relay during the take-over time. */
const POLLS = 10;
/** Standby relays wait for different times, by up to this fraction. */
const SPREAD = 0.2;

/**
 * Resolves when the active relay has made no progress for the take-over time: it neither published
 * nor sent a heartbeat. Taking over does not count as progress.
 */
export async function standBy({
  publisher,
  takeOverMs,
  signal,
}: Pick<Relay, 'publisher' | 'takeOverMs' | 'signal'>): Promise<void> {
  const silenceMs = takeOverMs * (1 + Math.random() * SPREAD);
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
export async function requireSafeTakeOver({
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
