import { TurnlogError } from '../../errors.ts';

/** Why a run was cut off from outside; a turn that had begun is recorded as interrupted. */
export const shuttingDown = (cause?: unknown): TurnlogError =>
  new TurnlogError('store_unavailable', 'The service is shutting down. Try again in a moment.', {
    retriable: true,
    retryAfterSeconds: 1,
    cause,
  });

export interface RunInFlight {
  /**
   * For what comes before the turn begins: aborts at `giveUp` (its reason) and at `interruptAll`
   * (reason `shuttingDown()`).
   */
  waiting: AbortSignal;
  /** Ends the run if it has not begun: nothing is lost then. */
  giveUp: (reason: Error) => void;
  /**
   * Aborts when the run's time is over (reason `model_timeout`) or at `interruptAll` (reason
   * `shuttingDown()`).
   */
  signal: AbortSignal;
  interrupted: () => boolean;
  /** Starts the run's clock: `signal` aborts after `timeoutMs`. */
  limit: (timeoutMs: number) => void;
}

export interface RunsInFlight {
  /**
   * Runs `work`; until it has settled the service is not idle. Errors: `shuttingDown()` after
   * `interruptAll`, and the work's own.
   */
  track<Result>(work: (run: RunInFlight) => Promise<Result>): Promise<Result>;
  count(): number;
  /** Ends the runs there are, and lets no other begin. */
  interruptAll(): void;
  /** Resolves when no run is left. */
  idle(): Promise<void>;
}

/** What cuts a run off, before its turn begins and from then on. */
interface Cutting {
  waiting: AbortController;
  running: AbortController;
  interrupted: boolean;
}

export function createRunsInFlight(): RunsInFlight {
  const runs = new Map<Cutting, Promise<unknown>>();
  let over = false;
  return {
    track: async (work) => {
      if (over) throw shuttingDown();
      const waiting = new AbortController();
      const running = new AbortController();
      const cutting: Cutting = { waiting, running, interrupted: false };
      let timer: NodeJS.Timeout | undefined;
      const limit = (timeoutMs: number): void => {
        timer = setTimeout(() => {
          running.abort(
            new TurnlogError(
              'model_timeout',
              `The run took longer than its limit of ${timeoutMs} ms.`,
              { retriable: true },
            ),
          );
        }, timeoutMs);
      };
      const settling = work({
        waiting: waiting.signal,
        giveUp: (reason) => waiting.abort(reason),
        signal: running.signal,
        interrupted: () => cutting.interrupted,
        limit,
      });
      runs.set(cutting, settling);
      try {
        return await settling;
      } finally {
        clearTimeout(timer);
        runs.delete(cutting);
      }
    },
    count: () => runs.size,
    interruptAll: () => {
      over = true;
      for (const cutting of runs.keys()) {
        const { waiting, running } = cutting;
        waiting.abort(shuttingDown());
        if (running.signal.aborted) continue;
        cutting.interrupted = true;
        running.abort(shuttingDown());
      }
    },
    idle: async () => {
      while (runs.size > 0) await Promise.allSettled(runs.values());
    },
  };
}
