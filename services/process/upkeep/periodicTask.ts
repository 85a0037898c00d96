import type { TurnWatch } from '../../../shared/runs/queueing/turnWatch.ts';
import type { OpenTurnCloser } from '../../../shared/runs/recovery/openTurnCloser.ts';
import { isLogUnavailable } from '../../../shared/lib/errors/turnlogError.ts';
import { runTask } from '../../../shared/lib/concurrency/eventLoopWatchdog.ts';
import type { Logger } from '../../../shared/lib/logger.ts';

/** How often turns and erasures that other processes left open are looked for. */
const SWEEP_MS = 2_000;
/** How often the health of things that other processes keep is polled. */
const POLL_MS = 1_000;
/** How often this process checks whether it left turns open; usually its queue is empty. */
const CLOSE_MS = 250;
/** How often turns that are due are looked up in the log. */
const WATCH_MS = 200;

/** Periodic work of a process; disposing of it waits for the work in progress. */
export type PeriodicTask = AsyncDisposable;

interface Work {
  everyMs: number;
  begin: (signal: AbortSignal) => void;
  /** Resolves when no work is in progress. */
  idle: () => Promise<void>;
}

function repeat({ everyMs, begin, idle }: Work): PeriodicTask {
  const stopping = new AbortController();
  const timer = setInterval(
    () => runTask('periodic work', () => begin(stopping.signal)),
    everyMs,
  ).unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      stopping.abort();
      await idle();
    },
  };
}

/** Repeats work that never rejects, skipping a turn while the last one is in progress. */
function repeatOneAtATime(
  everyMs: number,
  work: (signal: AbortSignal) => Promise<void>,
): PeriodicTask {
  let working: Promise<void> | undefined;

  async function workOnce(signal: AbortSignal): Promise<void> {
    await work(signal);
    working = undefined;
  }

  return repeat({
    everyMs,
    begin: (signal) => void (working ??= workOnce(signal)),
    idle: async () => working,
  });
}

/** Sweeps every few seconds, one sweep at a time. An unavailable store is not an error. */
export const startSweeper = (
  sweep: (signal: AbortSignal) => Promise<void>,
  logger: Logger,
  subject = 'open turns',
): PeriodicTask =>
  repeatOneAtATime(SWEEP_MS, async (signal) => {
    try {
      await sweep(signal);
    } catch (error) {
      if (isLogUnavailable(error))
        logger.debug({ err: error }, `the sweep for ${subject} waits for a store`);
      else logger.error({ err: error }, `the sweep for ${subject} failed`);
    }
  });

/** Polls every second, one poll at a time. Failures are ignored: the poll records them itself. */
export const startPolling = (poll: () => Promise<void>): PeriodicTask =>
  repeatOneAtATime(POLL_MS, async () => poll().catch(() => undefined));

/** Closes the turns that this process left open, as soon as the store is available again. */
export const startOpenTurnCloser = ({ closeDue, whenIdle }: OpenTurnCloser): PeriodicTask =>
  repeat({ everyMs: CLOSE_MS, begin: closeDue, idle: whenIdle });

/** Looks in the log for the ends of turns that other processes record. */
export const startTurnWatch = ({ pollDue, whenIdle }: TurnWatch): PeriodicTask =>
  repeat({ everyMs: WATCH_MS, begin: pollDue, idle: whenIdle });
