import type { SessionEnd, TurnComparison } from '../../shared/domain/replay/events.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ReplayLog } from './replayLog.ts';

/** What was compared of a session, and is recorded some turns at a time. */
export interface Comparisons {
  add(comparison: TurnComparison): void;
  /** Whether what was added is to be recorded now. */
  isDue(): boolean;
  /**
   * Records what was added, and how the replay of the session has ended, if it has; what may have
   * been recorded is not recorded twice. Errors: those of ReplayLog.tell.
   */
  flush(end?: Omit<SessionEnd, 'session_id'>): Promise<void>;
}

export function createComparisons(log: ReplayLog, session_id: string): Comparisons {
  const { comparedAtOnce, comparedWithinMs } = LIMITS.replays;
  let turns: TurnComparison[] = [];
  let since = 0;
  return {
    add(comparison) {
      if (turns.length === 0) since = performance.now();
      turns.push(comparison);
    },
    isDue: () =>
      turns.length >= comparedAtOnce ||
      (turns.length > 0 && performance.now() - since >= comparedWithinMs),
    async flush(end) {
      if (turns.length === 0 && !end) return;
      await log.tell({ type: 'record_comparison', session_id, turns, ...(end && { end }) });
      turns = [];
    },
  };
}
