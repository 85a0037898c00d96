import { runPaced } from '../../lib/concurrency/pacedSteps.ts';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';

/** The error of runs that a shutdown ends. A turn that had started is recorded as interrupted. */
export const shutdownError = (cause?: unknown): TurnlogError =>
  new TurnlogError('store_unavailable', 'The service is shutting down. Try again in a moment.', {
    retriable: true,
    retryAfterSeconds: 1,
    cause,
  });

export interface RunInFlight {
  /**
   * The signal for everything before the turn starts. Aborts at `cancelStart`, `interrupt` and
   * `interruptMatching` (with their reasons), and at `interruptAll` (with a `shutdownError`).
   */
  startSignal: AbortSignal;
  /** Ends the run if its turn has not started, so that nothing is lost. */
  cancelStart: (reason: Error) => void;
  /**
   * Aborts at the run's time limit (reason `model_timeout`), at `interrupt` and `interruptMatching`
   * (with their reasons), and at `interruptAll` (with a `shutdownError`).
   */
  signal: AbortSignal;
  /** Ends the run after its turn was ended from outside, as described by `reason`. */
  interrupt: (reason: TurnlogError) => void;
  isInterrupted: () => boolean;
  /** Sets the sessions whose turns the prompt contains, before the turn starts. */
  setOrigins: (origins: readonly string[]) => void;
  /** Starts the run's timer. `signal` aborts after `timeoutMs`. */
  startTimeout: (timeoutMs: number) => void;
  /** Must be called once when the run is over. The run is then no longer in flight. */
  end: () => void;
}

/** Identifies a run. */
export type RunSubject = Readonly<{
  account_id: string;
  agent_id: string;
  session_id: string;
  /** Other sessions whose turns the prompt contains. */
  origins?: readonly string[];
}>;

export interface RunsInFlight {
  /** Adds a run until its `end` is called. Throws `shutdownError` after `interruptAll`. */
  start(subject: RunSubject): RunInFlight;
  /**
   * Interrupts the runs that match now, in turn with the work of other accounts. `reason` also
   * determines how their turns are recorded.
   */
  interruptMatching(matches: (subject: RunSubject) => boolean, reason: TurnlogError): void;
  /**
   * True if `interruptMatching` was called since this time. It may have missed a run that was
   * prepared earlier.
   */
  interruptedSince(time: number): boolean;
  count(): number;
  /** Interrupts all runs, and prevents new ones. */
  interruptAll(): void;
  /** Resolves when no run is in flight. */
  whenIdle(): Promise<void>;
}

/** A run in flight, and what interrupts it before and after its turn starts. */
interface Entry {
  subject: RunSubject;
  starting: AbortController;
  running: AbortController;
  interrupted: boolean;
}

export function createRunsInFlight(): RunsInFlight {
  const entries = new Set<Entry>();
  let closed = false;
  let interruptedAt = -Infinity;
  let idle: PromiseWithResolvers<void> | undefined;

  function interrupt(entry: Entry, reason: TurnlogError): void {
    const { starting, running } = entry;
    starting.abort(reason);
    if (running.signal.aborted) return;
    entry.interrupted = true;
    running.abort(reason);
  }

  return {
    start(subject) {
      if (closed) throw shutdownError();
      const starting = new AbortController();
      const running = new AbortController();
      const entry: Entry = { subject, starting, running, interrupted: false };
      entries.add(entry);
      let timer: NodeJS.Timeout | undefined;
      return {
        startSignal: starting.signal,
        cancelStart: (reason) => starting.abort(reason),
        signal: running.signal,
        interrupt: (reason) => interrupt(entry, reason),
        isInterrupted: () => entry.interrupted,
        setOrigins: (origins) => void (entry.subject = { ...subject, origins }),
        startTimeout(timeoutMs) {
          timer = setTimeout(() => {
            const message = `The run took longer than its limit of ${timeoutMs} ms.`;
            running.abort(new TurnlogError('model_timeout', message, { retriable: true }));
          }, timeoutMs);
        },
        end() {
          clearTimeout(timer);
          entries.delete(entry);
          if (entries.size > 0) return;
          idle?.resolve();
          idle = undefined;
        },
      };
    },
    count: () => entries.size,
    interruptAll() {
      closed = true;
      for (const entry of entries) interrupt(entry, shutdownError());
    },
    interruptedSince: (time) => interruptedAt >= time,
    interruptMatching(matches, reason) {
      interruptedAt = performance.now();
      const matching = [...entries].filter(({ subject }) => matches(subject));
      if (matching.length === 0) return;
      // Each run takes some tenths of a millisecond to end, and an agent may have hundreds.
      runPaced(matching[0]!.subject.account_id, () => {
        interrupt(matching.pop()!, reason);
        return matching.length > 0;
      });
    },
    async whenIdle() {
      while (entries.size > 0) await (idle ??= Promise.withResolvers()).promise;
    },
  };
}
