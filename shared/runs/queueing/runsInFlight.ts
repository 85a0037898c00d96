import { TurnlogError } from '../../lib/errors/turnlogError.ts';

/** Why a run was cut off from outside; a turn that had begun is recorded as interrupted. */
export const shutdownError = (cause?: unknown): TurnlogError =>
  new TurnlogError('store_unavailable', 'The service is shutting down. Try again in a moment.', {
    retriable: true,
    retryAfterSeconds: 1,
    cause,
  });

export interface RunInFlight {
  /**
   * For what comes before the turn begins: aborts at `giveUp` and `end` (their reasons) and at
   * `interruptAll` (reason `shuttingDown()`).
   */
  startSignal: AbortSignal;
  /** Ends the run if it has not begun: nothing is lost then. */
  cancelStart: (reason: Error) => void;
  /**
   * Aborts when the run's time is over (reason `model_timeout`), at `end` (its reason) or at
   * `interruptAll` (reason `shuttingDown()`).
   */
  signal: AbortSignal;
  /** Cuts the run off, whose turn somebody else has ended: `reason` says how. */
  interrupt: (reason: TurnlogError) => void;
  isInterrupted: () => boolean;
  /** Says whose turns its prompt holds, before its turn begins. */
  setOrigins: (origins: readonly string[]) => void;
  /** Starts the run's clock: `signal` aborts after `timeoutMs`. */
  startTimeout: (timeoutMs: number) => void;
}

/** What a run is about. */
export type RunSubject = Readonly<{
  account_id: string;
  agent_id: string;
  session_id: string;
  /** Sessions of others that its prompt holds turns of. */
  origins?: readonly string[];
}>;

export interface RunsInFlight {
  /**
   * Runs `work`; until it has settled the service is not idle. Errors: `shuttingDown()` after
   * `interruptAll`, the reason of `end`, and the work's own.
   */
  track<Result>(subject: RunSubject, work: (run: RunInFlight) => Promise<Result>): Promise<Result>;
  /** Ends those of the runs that are meant, for a reason which says what becomes of their turns. */
  interruptMatching(isMeant: (subject: RunSubject) => boolean, reason: TurnlogError): void;
  count(): number;
  /** Ends the runs there are, and lets no other begin. */
  interruptAll(): void;
  /** Resolves when no run is left. */
  whenIdle(): Promise<void>;
}

/** What cuts a run off, before its turn begins and from then on. */
interface Cutting {
  subject: RunSubject;
  waiting: AbortController;
  running: AbortController;
  interrupted: boolean;
}

export function createRunsInFlight(): RunsInFlight {
  const runs = new Map<Cutting, Promise<unknown>>();
  let over = false;

  function cut(cutting: Cutting, reason: TurnlogError): void {
    const { waiting, running } = cutting;
    waiting.abort(reason);
    if (running.signal.aborted) return;
    cutting.interrupted = true;
    running.abort(reason);
  }

  return {
    track: async (subject, work) => {
      if (over) throw shutdownError();
      const waiting = new AbortController();
      const running = new AbortController();
      const cutting: Cutting = { subject, waiting, running, interrupted: false };
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
        startSignal: waiting.signal,
        cancelStart: (reason) => waiting.abort(reason),
        signal: running.signal,
        interrupt: (reason) => cut(cutting, reason),
        isInterrupted: () => cutting.interrupted,
        setOrigins: (origins) => void (cutting.subject = { ...subject, origins }),
        startTimeout: limit,
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
      for (const cutting of runs.keys()) cut(cutting, shutdownError());
    },
    interruptMatching(isMeant, reason) {
      for (const cutting of runs.keys()) if (isMeant(cutting.subject)) cut(cutting, reason);
    },
    whenIdle: async () => {
      while (runs.size > 0) await Promise.allSettled(runs.values());
    },
  };
}
