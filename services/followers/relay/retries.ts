import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Attempt } from './attempt.ts';
import type { Relay } from './relay.ts';

const PAUSES = { firstMs: 100, longestMs: 5000 };
/** Where only an operator can help. */
const HELPLESS_PAUSES = { firstMs: 5000, longestMs: 60_000 };
/** Take-overs in vain that what can pass may cost, however short the take-over time is. */
const QUICK_TRIES = 3;

const HELPLESS = ['position_invalid', 'log_changed', 'configuration_invalid'] as const;
/** What only an operator can change: where the relay is to begin, which log it is, topics, rights. */
export const needsOperator = (error: unknown): boolean =>
  HELPLESS.some((code) => isTurnlogError(error, code));

type Parts = Pick<Relay, 'logger' | 'lag' | 'takeOverMs'>;

/** How failures are logged and how long they are followed by a pause. */
export function createRetries({ logger, lag, takeOverMs }: Parts) {
  // One each: an ordinary failure after a refusal is tried again as soon as any other.
  const ordinary = createBackoff(PAUSES);
  const ofHelpless = createBackoff(HELPLESS_PAUSES);
  const stepsBack = createBackoff({ firstMs: 2 * takeOverMs, longestMs: 16 * takeOverMs });
  let told: string | undefined;
  /** Take-overs in vain in a row, by what can pass. */
  const inVain = { count: 0, since: 0 };

  /** A moment of a bad network is no reason to leave the field; more of them are. */
  function isQuick(failure: unknown): boolean {
    if (!isTurnlogError(failure) || !failure.retriable) return false;
    if (inVain.count === 0) inVain.since = performance.now();
    inVain.count += 1;
    return inVain.count <= QUICK_TRIES || performance.now() - inVain.since < takeOverMs / 2;
  }

  /** A failure that only an operator can end is logged once. */
  function logFailure(failure: unknown, retry_in_ms: number): void {
    const helpless = needsOperator(failure) ? String(failure) : undefined;
    const line =
      helpless === undefined
        ? 'The relay failed and goes on from its checkpoint'
        : 'The relay publishes nothing until this is changed';
    if (helpless === undefined || helpless !== told)
      logger.warn({ err: failure, retry_in_ms, position: lag.position() }, line);
    told = helpless;
  }

  return {
    /**
     * Logs the failure. Returns how long to wait, in milliseconds, and whether the relay steps back: it has taken over and
     * got nowhere, so another one is given the time to take over from it.
     */
    after(
      failure: unknown,
      { tookOver, madeProgress: gotOn }: Attempt,
    ): { pauseMs: number; stepsBack: boolean } {
      if (gotOn) {
        for (const backOff of [ordinary, ofHelpless, stepsBack]) backOff.reset();
        inVain.count = 0;
        told = undefined;
      }
      const isBack = tookOver && !gotOn && !isQuick(failure);
      const backMs = isBack ? stepsBack.next() : 0;
      const plainMs = needsOperator(failure) ? ofHelpless.next() : isBack ? 0 : ordinary.next();
      const pauseMs = Math.max(plainMs, backMs);
      logFailure(failure, pauseMs);
      return { pauseMs, stepsBack: isBack };
    },
  };
}
