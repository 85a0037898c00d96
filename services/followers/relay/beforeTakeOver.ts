import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { wasRestored } from './logIdentity.ts';
import type { Relay } from './relay.ts';

/**
 * Checks what can be checked without fencing anybody: a relay that would get nowhere leaves another
 * one alone.
 * Errors: `configuration_invalid` (what was published is gone), `log_changed` (the
 * log does not hold the checkpoint), those of the log and the publisher.
 */
export async function beforeTakeOver({
  log,
  publisher,
  startAfter,
  startIsStated,
}: Pick<Relay, 'log' | 'publisher' | 'startAfter' | 'startIsStated'>): Promise<void> {
  const checkpoint = await publisher.checkpoint();
  const lost = await publisher.lost();
  const isKnown = startIsStated && (!checkpoint || checkpoint.position === startAfter);
  if (lost !== undefined && !isKnown)
    throw new TurnlogError(
      'configuration_invalid',
      checkpoint
        ? `${lost} Nothing is published until you choose: give the relay new names (topics, checkpoint topic, transactional id), and it publishes everything there; or publish what is missing into a topic of its own with \`relay replay\`, set KAFKA_START_AFTER=${checkpoint.position} and restart the relay, which then goes on without it.`
        : `${lost} Nothing is published until you say where to begin, or consumers would see everything again: set KAFKA_START_AFTER to the position after the last event that was published (\`ce_position\`), or to \`beginning\`, or give the relay new names (topics, checkpoint topic, transactional id); then restart it.`,
    );
  await wasRestored(log, checkpoint);
}
