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

export function createRunsInFlight(): RunsInFlight {
  const runs = new Map<AbortController, Promise<unknown>>();
  const interruptedRuns = new WeakSet<AbortController>();
  let over = false;
  return {
    track: async (work) => {
      if (over) throw shuttingDown();
      const controller = new AbortController();
      let timer: NodeJS.Timeout | undefined;
      const limit = (timeoutMs: number): void => {
        timer = setTimeout(() => {
          controller.abort(
            new TurnlogError(
              'model_timeout',
              `The run took longer than its limit of ${timeoutMs} ms.`,
              { retriable: true },
            ),
          );
        }, timeoutMs);
      };
      const running = work({
        signal: controller.signal,
        interrupted: () => interruptedRuns.has(controller),
        limit,
      });
      runs.set(controller, running);
      try {
        return await running;
      } finally {
        clearTimeout(timer);
        runs.delete(controller);
      }
    },
    count: () => runs.size,
    interruptAll: () => {
      over = true;
      for (const controller of runs.keys()) {
        if (controller.signal.aborted) continue;
        interruptedRuns.add(controller);
        controller.abort(shuttingDown());
      }
    },
    idle: async () => {
      while (runs.size > 0) await Promise.allSettled(runs.values());
    },
  };
}
