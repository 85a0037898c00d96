import type { ReplaySettings, TurnComparison } from '../events.ts';
import type {
  SessionCompactedData,
  SessionEvent,
  ToolCalledData,
  TurnStartedData,
} from '../../sessions/events.ts';

export type TurnEnded = Extract<
  SessionEvent,
  {
    type: 'session.turn_completed.v1' | 'session.turn_failed.v1' | 'session.turn_interrupted.v1';
  }
>;

/** A turn as the log has it, with its texts. */
export interface WholeTurn {
  started: TurnStartedData;
  /** Summaries of older turns that were made since the turn before, oldest first. */
  compactions: SessionCompactedData[];
  calls: ToolCalledData[];
  /** Undefined while it is open. */
  end: TurnEnded | undefined;
  /** Of its last event, as are its hash and its time. */
  revision: number;
  hash: string;
  recorded_at: string;
}

/** The parts of a replay that never change. */
export interface RunningReplay {
  replay_id: string;
  account_id: string;
  settings: ReplaySettings;
}

/** A recorded turn and its replay. */
export interface TurnPair {
  replay: RunningReplay;
  session_id: string;
  recorded: WholeTurn;
  /** Undefined for a turn that was not run again. */
  replayed: (WholeTurn & { session_id: string; other_tokens: number }) | undefined;
  /** The error code that prevented the replay of the turn. */
  refused?: string | undefined;
}

/** The token budget of a replay. */
export interface Budget {
  /**
   * Reports the tokens of a recorded turn so far in a session of the replay, `in`, with all its
   * attempts. After the comparison, the recorded number counts instead.
   */
  took(taken: { session_id: string; turn: number; in: string; tokens: number }): void;
  /** Tokens of a session's turns without a comparison so far. */
  uncompared(sessionId: string): number;
  /** Whether the budget is spent: no further turn starts. */
  isSpent(): boolean;
}

/** The budget and the abort signal of a comparison. */
export interface Comparing {
  budget: Pick<Budget, 'took' | 'isSpent'>;
  signal: AbortSignal;
}

/**
 * Compares a replayed turn with the recorded one, and runs the checks of the replay. A `retriable`
 * error is retried later.
 */
export type CompareTurn = (pair: TurnPair, comparing: Comparing) => Promise<TurnComparison>;
