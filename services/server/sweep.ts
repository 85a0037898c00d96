import type { LeftOpenCloser } from '../../shared/commands/recovery/closeLeftOpen.ts';
import { isTurnlogError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/logger.ts';

/** How often the turns of others are looked after. */
const SWEEP_MS = 2_000;
/** How often this process looks whether it has left turns open: nothing but a look, mostly. */
const CLOSE_MS = 250;

/** What a process does again and again. */
export interface Repeated {
  /** Lets what is at work end. */
  stop(): Promise<void>;
}

/** Sweeps every few seconds, one sweep at a time. A store that is away is waited for. */
export function startSweeper(
  sweep: (signal: AbortSignal) => Promise<void>,
  logger: Logger,
): Repeated {
  const stopping = new AbortController();
  let sweeping: Promise<void> | undefined;

  async function sweepOnce(): Promise<void> {
    try {
      await sweep(stopping.signal);
    } catch (error) {
      if (isTurnlogError(error, 'store_unavailable'))
        logger.debug({ err: error }, 'open turns could not be looked after yet');
      else logger.error({ err: error }, 'open turns could not be looked after');
    }
    sweeping = undefined;
  }

  const timer = setInterval(() => void (sweeping ??= sweepOnce()), SWEEP_MS).unref();
  return {
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await sweeping;
    },
  };
}

/** Closes what this process had to leave open, as soon as the store is back. */
export function startClosing({ closeDue, idle }: LeftOpenCloser): Repeated {
  const stopping = new AbortController();
  const timer = setInterval(() => closeDue(stopping.signal), CLOSE_MS).unref();
  return {
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await idle();
    },
  };
}
