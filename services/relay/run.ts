import { isTurnlogError } from '../../shared/errors.ts';
import { publishUntilFenced } from './publish.ts';
import type { Relay } from './relay.ts';
import { createRetries } from './retries.ts';
import { standBy } from './standBy.ts';

const HELPLESS = ['position_invalid', 'log_changed', 'configuration_invalid'] as const;

/** What only an operator can change: where the relay is to begin. */
const helplessness = (error: unknown): string | undefined =>
  HELPLESS.some((code) => isTurnlogError(error, code)) ? (error as Error).message : undefined;

/**
 * Publishes every event of the log in order, first what is there, then live, until the signal
 * aborts. A failure is logged and followed by a pause, from 0.1 s doubling to 5 s, and by going on
 * from the checkpoint; nothing is left out. Where it can't begin there the pauses are from 5 s to a
 * minute. Fenced by another relay, it stands by until that one falls silent.
 */
export async function runRelay(relay: Relay): Promise<void> {
  const { signal, logger, lag, onState } = relay;
  const retries = createRetries(relay);
  let standingBy = false;
  while (!signal.aborted) {
    const before = lag.position();
    try {
      if (standingBy) await standBy(relay);
      standingBy = false;
      await publishUntilFenced(relay);
    } catch (error) {
      if (signal.aborted) return;
      if (isTurnlogError(error, 'publisher_fenced')) {
        standingBy = true;
        onState('standing_by');
        logger.info(
          { position: lag.position() },
          'Another relay has taken over; this one stands by',
        );
        continue;
      }
      if (lag.position() !== before) retries.moved();
      const reason = helplessness(error);
      onState(standingBy ? 'standing_by' : 'retrying', reason);
      await retries.pauseAfter(error, reason);
    }
  }
}
