import { setTimeout as sleep } from 'node:timers/promises';
import type { Relay } from './relay.ts';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
/**
 * Where only an operator can help. Each attempt takes over from another relay, which would do no better: they are
 * to be few.
 */
const FIRST_HELPLESS_PAUSE_MS = 5000;
const LONGEST_HELPLESS_PAUSE_MS = 60_000;

/** A pause that doubles from each time to the next. */
function createPause(
  signal: AbortSignal,
  { firstMs, longestMs }: { firstMs: number; longestMs: number },
) {
  let next = firstMs;
  return {
    next: () => next,
    reset: () => void (next = firstMs),
    async wait(): Promise<void> {
      await sleep(next, undefined, { signal }).catch(() => undefined);
      next = Math.min(next * 2, longestMs);
    },
  };
}

/** How failures are logged and how long they are followed by a pause. */
export function createRetries({ signal, logger, lag }: Pick<Relay, 'signal' | 'logger' | 'lag'>) {
  // One each: an ordinary failure after a refusal is tried again as soon as any other.
  const ordinary = createPause(signal, { firstMs: FIRST_PAUSE_MS, longestMs: LONGEST_PAUSE_MS });
  const ofHelpless = createPause(signal, {
    firstMs: FIRST_HELPLESS_PAUSE_MS,
    longestMs: LONGEST_HELPLESS_PAUSE_MS,
  });
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
      const pause = helpless === undefined ? ordinary : ofHelpless;
      const line =
        helpless === undefined
          ? 'The relay failed and goes on from its checkpoint'
          : 'The relay publishes nothing until this is changed';
      const fields = { err: failure, retry_in_ms: pause.next(), position: lag.position() };
      if (helpless === undefined || helpless !== told) logger.warn(fields, line);
      told = helpless;
      await pause.wait();
    },
  };
}
