import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import { wasRestored } from './logErrors.ts';
import type { Relay } from './relay.ts';

/** Polls of the active relay in the time that it may be silent. */
const POLLS = 10;
/** Relays that stand by wait for different times, by up to this part. */
const SPREAD = 0.2;

/**
 * Resolves when the active relay has made no progress for the take-over time: it neither published
 * nor sent a heartbeat. Taking over is no progress.
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
 * Checks what can be checked without fencing another relay: one that could not publish leaves the
 * active relay alone. Throws `configuration_invalid` where published messages are gone, and
 * `log_changed` where the log does not hold the checkpoint.
 */
export async function requireSafeTakeOver({
  log,
  publisher,
  startAfter,
  startIsStated,
}: Pick<Relay, 'log' | 'publisher' | 'startAfter' | 'startIsStated'>): Promise<void> {
  const checkpoint = await publisher.checkpoint();
  const loss = await publisher.lost();
  const isKnown = startIsStated && (!checkpoint || checkpoint.position === startAfter);
  if (loss !== undefined && !isKnown)
    throw new TurnlogError(
      'configuration_invalid',
      checkpoint
        ? `${loss} Nothing is published until you choose: give the relay new names (topics, checkpoint topic, transactional id), and it publishes everything there; or publish what is missing into a topic of its own with \`relay replay\`, set KAFKA_START_AFTER=${checkpoint.position} and restart the relay, which then goes on without it.`
        : `${loss} Nothing is published until you say where to begin, or consumers would see everything again: set KAFKA_START_AFTER to the position after the last event that was published (\`ce_position\`), or to \`beginning\`, or give the relay new names (topics, checkpoint topic, transactional id); then restart it.`,
    );
  await wasRestored(log, checkpoint);
}
