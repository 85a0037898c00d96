import { createBackoff } from '../time/backoff.ts';
import { isLogUnavailable } from '../errors/turnlogError.ts';
import { errorSummary, publicReason } from '../errors/errorSummary.ts';
import type { Logger } from '../logger.ts';
import { repeatUntilAborted } from './repeatUntilAborted.ts';
import { sleepUntilAborted } from '../time/sleep.ts';

const PAUSES = { firstMs: 200, longestMs: 5_000, spread: [0.5, 1] } as const;

/** Held by one process of several at a time. */
export interface Leadership {
  /** Aborts when another process may hold it. */
  lost: AbortSignal;
  close(): Promise<void>;
}

/** The leadership of a process that has no others beside it. */
export const permanentLeadership = (): Leadership => ({
  lost: new AbortController().signal,
  close: async () => undefined,
});

/** Leads for one term, if leadership can be acquired; resolves with whether it could. */
export async function leadOnce<Held extends Leadership>(
  acquireLeadership: () => Promise<Held | undefined>,
  lead: (leadership: Held) => Promise<void>,
): Promise<boolean> {
  const leadership = await acquireLeadership();
  if (!leadership) return false;
  await using term = new AsyncDisposableStack();
  await lead(term.adopt(leadership, (held) => held.close()));
  return true;
}

interface LeaderTerms<Held extends Leadership> {
  /** Resolves once this process is the leader; with undefined when the signal aborted first. */
  acquireLeadership: (signal: AbortSignal) => Promise<Held | undefined>;
  /**
   * Works until the signal aborts. Resolves with how long, in milliseconds, this process then
   * leaves the leadership to others.
   */
  lead: (leadership: Held, signal: AbortSignal) => Promise<number>;
  /** Handles a failure to acquire leadership or to lead. Returns the pause in milliseconds. */
  onFailure: (error: unknown) => number | Promise<number>;
  signal: AbortSignal;
}

/**
 * Leads term after term, with pauses after failures, until the signal aborts or no leadership can be
 * acquired.
 */
export async function leadUntilAborted<Held extends Leadership>({
  acquireLeadership,
  lead,
  onFailure,
  signal,
}: LeaderTerms<Held>): Promise<void> {
  await repeatUntilAborted({
    async run() {
      let pauseMs = 0;
      const hasLed = await leadOnce(
        () => acquireLeadership(signal),
        async (leadership) => {
          pauseMs = await lead(leadership, AbortSignal.any([signal, leadership.lost]));
        },
      );
      return hasLed ? pauseMs : 'stop';
    },
    onFailure,
    signal,
  });
}

interface LeaderWork {
  /** Looks for work and starts it, until the signal aborts; called repeatedly. */
  poll(signal: AbortSignal): Promise<void>;
  /** Stops all started work. */
  stop(): Promise<void>;
}

interface LeaderTaskOptions<Held extends Leadership> {
  /** As logs name it: "sending to webhooks". */
  name: string;
  acquireLeadership: LeaderTerms<Held>['acquireLeadership'];
  begin: (leadership: Held) => Promise<LeaderWork>;
  pollMs: number;
  /** Why polling is paused; undefined while it is not. */
  pausedReason: () => string | undefined;
  logger: Pick<Logger, 'warn' | 'error'>;
}

export interface LeaderTask {
  isActive(): boolean;
  /** Why the work is not done completely; undefined when it is. */
  reason(): string | undefined;
  close(): Promise<void>;
}

/**
 * Runs work in one of several processes at a time until it is closed. Failures are logged and
 * retried.
 */
export function startLeaderTask<Held extends Leadership>({
  name,
  acquireLeadership,
  begin,
  pollMs,
  pausedReason,
  logger,
}: LeaderTaskOptions<Held>): LeaderTask {
  const closing = new AbortController();
  const pauses = createBackoff(PAUSES);
  let active = false;
  let failure: string | undefined;

  async function pollOnce(work: LeaderWork, signal: AbortSignal): Promise<void> {
    if (pausedReason() !== undefined) return;
    try {
      await work.poll(signal);
      failure = undefined;
      pauses.reset();
    } catch (error) {
      if (signal.aborted || isLogUnavailable(error)) return;
      failure = publicReason(error);
      logger.error({ err: error }, `${name}: polling for work failed`);
    }
  }

  async function lead(leadership: Held, signal: AbortSignal): Promise<number> {
    const work = await begin(leadership);
    active = true;
    try {
      while (!signal.aborted) {
        await pollOnce(work, signal);
        await sleepUntilAborted(pollMs, { signal, ref: false });
      }
    } finally {
      await work.stop();
      active = false;
    }
    return 0;
  }

  const running = leadUntilAborted({
    acquireLeadership,
    lead,
    onFailure(error) {
      active = false;
      failure = publicReason(error);
      const retry_in_ms = pauses.next();
      logger.warn({ ...errorSummary(error), retry_in_ms }, `${name} failed`);
      return retry_in_ms;
    },
    signal: closing.signal,
  });
  return {
    isActive: () => active,
    reason: () => pausedReason() ?? failure,
    async close() {
      closing.abort();
      await running;
    },
  };
}
