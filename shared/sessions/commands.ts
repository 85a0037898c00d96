import type { Description } from './description.ts';
import type { Erasure } from '../domain/schema.ts';
import type {
  ForkPoint,
  SessionCompactedData,
  SessionStartedData,
  ToolCalledData,
  TurnCompletedData,
  TurnFailedData,
  TurnInterruptedData,
  TurnStartedData,
} from './events.ts';

/** The open turn of a run, and the instance that runs it. */
export interface OwnedTurn {
  turn: number;
  owner: string;
}

/** The data that a fork starts with. */
export interface ForkStart extends Pick<SessionStartedData, 'agent_id' | 'instruction'> {
  forked_from: ForkPoint;
}

/** Commands on sessions. A run names its agent, and the session assigns the number of the turn. */
export type SessionCommand =
  | {
      type: 'start_turn';
      agent_id: string;
      new_session: boolean;
      /** The end user whose chat token starts the session. */
      user_hmac?: string;
      turn: Omit<TurnStartedData, 'turn'>;
      /** For a turn of a replay: the replay, and the last turn that it has seen in the session. */
      replay?: { replay_id: string; after_turn: number };
    }
  /** Creates the session of a replay before its first turn. */
  | ({ type: 'begin_session' } & Required<Pick<SessionStartedData, 'replay'>> &
      Omit<SessionStartedData, 'replay'>)
  | ({ type: 'fork_session' } & ForkStart)
  | { type: 'record_tool_call'; run: OwnedTurn; call: Omit<ToolCalledData, 'turn'> }
  | { type: 'complete_turn'; run: OwnedTurn; answer: Omit<TurnCompletedData, 'turn'> }
  | { type: 'fail_turn'; run: OwnedTurn; failure: Omit<TurnFailedData, 'turn'> }
  | ({ type: 'interrupt_turn' } & TurnInterruptedData)
  | { type: 'describe_session'; before: Description; after: Description }
  | { type: 'compact_session'; compaction: SessionCompactedData }
  | ({ type: 'erase_session' } & Erasure);
export type CommandOf<Type> = Extract<SessionCommand, { type: Type }>;
export type SessionState =
  | { status: 'none' }
  /** `turn` is the last turn that began; 0 before the first. */
  | ({ status: 'idle'; turn: number } & SessionIdentity)
  | ({ status: 'running'; deadline: string } & OwnedTurn & SessionIdentity)
  | ({ status: 'erased'; turn: number } & SessionIdentity);
/**
 * The agent of a session and, if present, the session's instruction and the replay that made the
 * session.
 */
interface SessionIdentity {
  agent_id: string;
  instruction?: string;
  replay_id?: string;
}
/** A session with an open turn. */
export type RunningSession = Extract<SessionState, { status: 'running' }>;
