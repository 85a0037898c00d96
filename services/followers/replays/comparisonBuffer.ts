import type { SessionEnd, TurnComparison } from '../../../shared/replays/events.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { retryTransient } from './transientFailures.ts';
import type { ReplayStream } from './replayStream.ts';

/** What was compared of a session, and is recorded some turns at a time. */
export interface ComparisonBuffer {
  /** What is added is recorded in a while, also where nothing follows it. */
  add(comparison: TurnComparison): void;
  /** Whether so much was added that it is to be recorded now. */
  isFull(): boolean;
  /**
   * Records what was added, and how the replay of the session has ended, if it has; what may have
   * been recorded is not recorded twice. It waits until passing trouble has passed. Errors: those of
   * ReplayLog.tell, the signal's reason.
   */
  flush(end?: Omit<SessionEnd, 'session_id'>): Promise<void>;
  /** Nothing more is recorded, once it resolves, unless somebody flushes. */
  close(): Promise<void>;
}

/** The session that is replayed, and what its recording waits with. */
interface Recording {
  session_id: string;
  signal: AbortSignal;
  logger: Pick<Logger, 'warn'>;
}

export function createComparisonBuffer(
  log: Pick<ReplayStream, 'record'>,
  { session_id, ...patience }: Recording,
): ComparisonBuffer {
  const { comparedAtOnce, comparedWithinMs } = LIMITS.replays;
  let turns: TurnComparison[] = [];
  let timer: NodeJS.Timeout | undefined;
  let timed = Promise.resolve();

  function stop(): void {
    clearTimeout(timer);
    timer = undefined;
  }

  async function record(end: Omit<SessionEnd, 'session_id'> | undefined): Promise<void> {
    const told = [...turns];
    if (told.length === 0 && !end) return;
    await log.record({ type: 'record_comparison', session_id, turns: told, ...(end && { end }) });
    // Others may have been added meanwhile, and told by another flush.
    turns = turns.filter((turn) => !told.includes(turn));
  }

  async function flush(end?: Omit<SessionEnd, 'session_id'>): Promise<void> {
    stop();
    await retryTransient(() => record(end), patience);
  }

  /** What keeps it from being recorded is told to whoever flushes next. */
  function flushUntold(): void {
    timed = flush().catch(() => undefined);
  }

  return {
    add(comparison) {
      turns.push(comparison);
      timer ??= setTimeout(flushUntold, comparedWithinMs);
    },
    isFull: () => turns.length >= comparedAtOnce,
    flush,
    close() {
      stop();
      return timed;
    },
  };
}
