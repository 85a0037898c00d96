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

/** A replay, as far as it never changes. */
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
  /** The code of what keeps it from being run again. */
  refused?: string | undefined;
}

/** The tokens that a replay may take. */
export interface Budget {
  /**
   * Says what a recorded turn has taken by now in a session of the replay, `in`, with all its tries.
   * Once the turn is compared, what was recorded counts instead.
   */
  took(taken: { session_id: string; turn: number; in: string; tokens: number }): void;
  /** What a session has taken by now that is not compared. */
  uncompared(sessionId: string): number;
  /** True where nothing more is to be begun. */
  isSpent(): boolean;
}

/** What a turn is compared under. */
export interface Comparing {
  budget: Pick<Budget, 'took' | 'isSpent'>;
  signal: AbortSignal;
}

/**
 * Says how a replayed turn compares with the recorded one, and makes the checks of the replay. What
 * it throws as `retriable` is asked again later.
 */
export type CompareTurn = (pair: TurnPair, comparing: Comparing) => Promise<TurnComparison>;
