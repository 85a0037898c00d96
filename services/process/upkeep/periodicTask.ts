import type { TurnWatch } from '../../../shared/runs/queueing/turnWatch.ts';
import type { OpenTurnCloser } from '../../../shared/runs/recovery/openTurnCloser.ts';
import { isLogUnavailable } from '../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../shared/lib/logger.ts';

/** How often the turns of others are looked after. */
const SWEEP_MS = 2_000;
/** How often this process looks whether it has left turns open: nothing but a look, mostly. */
const CLOSE_MS = 250;

/** What a process does again and again; disposing of it lets what is at work end. */
export type PeriodicTask = AsyncDisposable;

interface Work {
  everyMs: number;
  begin: (signal: AbortSignal) => void;
  /** Resolves when nothing is at work. */
  idle: () => Promise<void>;
}

function repeat({ everyMs, begin, idle }: Work): PeriodicTask {
  const stopping = new AbortController();
  const timer = setInterval(() => begin(stopping.signal), everyMs).unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      stopping.abort();
      await idle();
    },
  };
}

/** Sweeps every few seconds, one sweep at a time; `what` it looks after. A store that is away is waited for. */
export function startSweeper(
  sweep: (signal: AbortSignal) => Promise<void>,
  logger: Logger,
  what = 'open turns',
): PeriodicTask {
  let sweeping: Promise<void> | undefined;

  async function sweepOnce(signal: AbortSignal): Promise<void> {
    try {
      await sweep(signal);
    } catch (error) {
      if (isLogUnavailable(error))
        logger.debug({ err: error }, `${what} could not be looked after yet`);
      else logger.error({ err: error }, `${what} could not be looked after`);
    }
    sweeping = undefined;
  }

  return repeat({
    everyMs: SWEEP_MS,
    begin: (signal) => void (sweeping ??= sweepOnce(signal)),
    idle: async () => sweeping,
  });
}

/** How often it is asked how things are that others tell of. */
const ASK_MS = 1_000;

/** Asks every second, one question at a time. What fails is for whoever wants to know it. */
export function startPolling(ask: () => Promise<void>): PeriodicTask {
  let asking: Promise<void> | undefined;

  async function askOnce(): Promise<void> {
    await ask().catch(() => undefined);
    asking = undefined;
  }

  return repeat({
    everyMs: ASK_MS,
    begin: () => void (asking ??= askOnce()),
    idle: async () => asking,
  });
}

/** Closes what this process had to leave open, as soon as the store is back. */
export const startOpenTurnCloser = ({ closeDue, whenIdle }: OpenTurnCloser): PeriodicTask =>
  repeat({ everyMs: CLOSE_MS, begin: closeDue, idle: whenIdle });

/** How often it is asked whether a turn is due to be looked at in the log. */
const WATCH_MS = 200;

/** Looks in the log for the ends of turns that others record. */
export const startTurnWatch = ({ pollDue, whenIdle }: TurnWatch): PeriodicTask =>
  repeat({ everyMs: WATCH_MS, begin: pollDue, idle: whenIdle });
