import type { SessionEnd, TurnComparison } from '../../../shared/replays/events.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { RetryTransient } from './transientFailures.ts';
import type { ReplayStream } from './replayStream.ts';

/** Buffers the comparisons of a session, and records several turns at a time. */
export interface ComparisonBuffer {
  /** Adds a comparison, which is recorded after a while even if nothing follows. */
  add(comparison: TurnComparison): void;
  /** Returns true when the buffer should be recorded now. */
  isFull(): boolean;
  /**
   * Records the buffer, and how the replay of the session has ended, if it has. Nothing is recorded
   * twice. Transient failures are retried.
   */
  flush(end?: Omit<SessionEnd, 'session_id'>): Promise<void>;
  /** Once it resolves, nothing more is recorded without another flush. */
  close(): Promise<void>;
}

export function createComparisonBuffer(
  log: Pick<ReplayStream, 'record'>,
  session_id: string,
  retry: RetryTransient,
): ComparisonBuffer {
  const { comparedAtOnce, comparedWithinMs } = LIMITS.replays;
  let turns: TurnComparison[] = [];
  let timer: NodeJS.Timeout | undefined;
  let timedFlush = Promise.resolve();

  function stop(): void {
    clearTimeout(timer);
    timer = undefined;
  }

  async function record(end: Omit<SessionEnd, 'session_id'> | undefined): Promise<void> {
    const recorded = [...turns];
    if (recorded.length === 0 && !end) return;
    await log.record({
      type: 'record_comparison',
      session_id,
      turns: recorded,
      ...(end && { end }),
    });
    // Comparisons may have been added meanwhile, and recorded by another flush.
    turns = turns.filter((turn) => !recorded.includes(turn));
  }

  async function flush(end?: Omit<SessionEnd, 'session_id'>): Promise<void> {
    stop();
    await retry(() => record(end));
  }

  /** The next explicit flush reports a failure. */
  function flushInBackground(): void {
    timedFlush = flush().catch(() => undefined);
  }

  return {
    add(comparison) {
      turns.push(comparison);
      timer ??= setTimeout(flushInBackground, comparedWithinMs);
    },
    isFull: () => turns.length >= comparedAtOnce,
    flush,
    close() {
      stop();
      return timedFlush;
    },
  };
}
