import { createBackoff } from '../time/backoff.ts';
import { isLogUnavailable, isTurnlogError } from '../errors/turnlogError.ts';
import { errorSummary } from '../errors/errorSummary.ts';
import type { Logger } from '../logger.ts';
import { sleepUntilAborted } from '../time/sleep.ts';

const PAUSES = { firstMs: 200, longestMs: 5_000, spread: [0.5, 1] } as const;

/** That this process is the one of several that does some work. */
export interface Leadership {
  /** Aborts when another process may do it. */
  lost: AbortSignal;
  close(): Promise<void>;
}

/** The work, while this process does it. */
export interface LeaderWork {
  /** Looks what there is to do, and begins it; called again and again. */
  poll(): Promise<void>;
  /** Ends what was begun. */
  stop(): Promise<void>;
}

interface LeaderTaskOptions<Place extends Leadership> {
  /** As logs name it: "sending to webhooks". */
  name: string;
  /**
   * Waits until no other process does it; undefined when the signal aborted first. Errors:
   * `store_unavailable`.
   */
  acquireLeadership: (signal: AbortSignal) => Promise<Place | undefined>;
  begin: (place: Place) => Promise<LeaderWork>;
  pollMs: number;
  /** Why nothing is looked for now; undefined where it may be. */
  pausedReason: () => string | undefined;
  logger: Pick<Logger, 'warn' | 'error'>;
}

export interface LeaderTask {
  isActive(): boolean;
  /** Why the work is not done, or not all of it. */
  reason(): string | undefined;
  close(): Promise<void>;
}

/** What is told of a failure to those who don't read the log. */
export const publicReason = (error: unknown): string =>
  isTurnlogError(error) ? error.message : 'It failed; the log says why.';

/**
 * Does some work in one process of several, in this one or after another one, until it is closed.
 * It needs nobody's care: failures are logged, and tried again after a pause.
 */
export function startLeaderTask<Place extends Leadership>(
  work: LeaderTaskOptions<Place>,
): LeaderTask {
  const {
    name,
    acquireLeadership: becomeActive,
    begin,
    pollMs: lookMs,
    pausedReason: doubt,
    logger,
  } = work;
  const closing = new AbortController();
  const pauses = createBackoff(PAUSES);
  let active = false;
  let trouble: string | undefined;

  async function lookWith(duty: LeaderWork): Promise<void> {
    if (doubt() !== undefined) return;
    try {
      await duty.poll();
      trouble = undefined;
      pauses.reset();
    } catch (error) {
      if (isLogUnavailable(error)) return;
      trouble = publicReason(error);
      logger.error({ err: error }, `${name}: it could not be looked what there is to do`);
    }
  }

  async function workAt(place: Place): Promise<void> {
    const signal = AbortSignal.any([closing.signal, place.lost]);
    const duty = await begin(place);
    active = true;
    try {
      while (!signal.aborted) {
        await lookWith(duty);
        await sleepUntilAborted(lookMs, { signal, ref: false });
      }
    } finally {
      await duty.stop();
      active = false;
    }
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        const place = await becomeActive(closing.signal);
        if (!place) return;
        try {
          await workAt(place);
        } finally {
          await place.close();
        }
      } catch (error) {
        active = false;
        trouble = publicReason(error);
        const retry_in_ms = pauses.next();
        logger.warn({ ...errorSummary(error), retry_in_ms }, `${name} failed`);
        await sleepUntilAborted(retry_in_ms, { signal: closing.signal, ref: false });
      }
    }
  }

  const running = run();
  return {
    isActive: () => active,
    reason: () => doubt() ?? trouble,
    async close() {
      closing.abort();
      await running;
    },
  };
}
