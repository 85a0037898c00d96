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

/** A recorded turn with its texts. */
export interface WholeTurn {
  started: TurnStartedData;
  /** Compactions since the previous turn, oldest first. */
  compactions: SessionCompactedData[];
  calls: ToolCalledData[];
  /** Undefined while the turn is open. */
  end: TurnEnded | undefined;
  /** Revision of the turn's last event, as are hash and time. */
  revision: number;
  hash: string;
  recorded_at: string;
}

/** The immutable parts of a replay. */
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
  /** Undefined for a turn that was not replayed. */
  replayed: (WholeTurn & { session_id: string; other_tokens: number }) | undefined;
  /** The error code that prevented the replay of the turn. */
  refused?: string | undefined;
}

/** The token budget of a replay. */
export interface Budget {
  /**
   * Reports the tokens that all attempts of a recorded turn used so far in the replay's session
   * `in`. The comparison then replaces this number with the recorded one.
   */
  took(taken: { session_id: string; turn: number; in: string; tokens: number }): void;
  /** Tokens of a session's turns that have not been compared yet, or of this one and its judges. */
  uncompared(sessionId: string, turn?: number): number;
  /** True when the budget is spent, so that no further turn starts. */
  isSpent(): boolean;
}

/** The circumstances of a comparison. */
export interface ComparisonContext {
  budget: Pick<Budget, 'took' | 'isSpent'>;
  signal: AbortSignal;
  /** Does work that counts its own attempts. The attempt in which the turn is compared ends meanwhile. */
  outsideAttempt<Result>(work: () => Promise<Result>): Promise<Result>;
}

/**
 * Compares a replayed turn with the recorded one, and runs the checks of the replay. A `retriable`
 * error is retried later.
 */
export type CompareTurn = (pair: TurnPair, comparing: ComparisonContext) => Promise<TurnComparison>;
