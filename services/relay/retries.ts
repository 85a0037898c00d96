import { createBackOff } from '../../shared/backOff.ts';
import { pauseAtMost } from '../../shared/pause.ts';
import type { Relay } from './relay.ts';

const PAUSES = { firstMs: 100, longestMs: 5000 };
/**
 * Where only an operator can help. Each attempt takes over from another relay, which would do no
 * better: they are to be few.
 */
const HELPLESS_PAUSES = { firstMs: 5000, longestMs: 60_000 };

/** How failures are logged and how long they are followed by a pause. */
export function createRetries({ signal, logger, lag }: Pick<Relay, 'signal' | 'logger' | 'lag'>) {
  // One each: an ordinary failure after a refusal is tried again as soon as any other.
  const ordinary = createBackOff(PAUSES);
  const ofHelpless = createBackOff(HELPLESS_PAUSES);
  let told: string | undefined;

  return {
    /** It got on in the meantime. */
    moved(): void {
      ordinary.reset();
      ofHelpless.reset();
      told = undefined;
    },
    /** Says it, unless it is what only an operator can change and was said before. */
    async pauseAfter(failure: unknown, helpless: string | undefined): Promise<void> {
      const retryInMs = (helpless === undefined ? ordinary : ofHelpless).next();
      const line =
        helpless === undefined
          ? 'The relay failed and goes on from its checkpoint'
          : 'The relay publishes nothing until this is changed';
      const fields = { err: failure, retry_in_ms: retryInMs, position: lag.position() };
      if (helpless === undefined || helpless !== told) logger.warn(fields, line);
      told = helpless;
      await pauseAtMost(retryInMs, { signal });
    },
  };
}
