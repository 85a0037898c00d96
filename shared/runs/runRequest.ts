import type { ChatSettings } from '../sessions/turns/chat.ts';
import type { ToolCalledData } from '../sessions/events.ts';
import type { FallbackModel } from '../sessions/turns/promptParts.ts';
import type { FunctionCall, ToolResult } from '../ports/toolbox.ts';
import type { AgentRow } from '../readModels/tables.ts';
import type { Actor } from '../commandHandling/context.ts';
import type { Claim } from '../requests/idempotency.ts';

/** The agent and the session of a run, determined once per request before the run waits. */
export interface PreparedRun {
  agent: AgentRow;
  session_id: string;
  new_session: boolean;
  /** When they were read, in milliseconds of `performance.now()`. */
  preparedAt: number;
}

/** The input of a client. */
export interface RunInput {
  agent_id: string;
  input: string;
  /** Absent for a new session. */
  session_id?: string;
  /**
   * Present if the text may be read as it arrives: by the caller, or by followers that may come.
   * Absent, the model is called without streaming.
   */
  deltas?: 'caller' | 'followers';
  /** For a request with an idempotency key. */
  claim?: Claim<PreparedRun> | undefined;
  /** The recorded turn to replay. */
  replay?: ReplayedTurn;
}

/** A recorded turn to replay. */
export interface ReplayedTurn {
  replay_id: string;
  /** Number of the recorded turn. */
  turn: number;
  /** The last turn of the replay's session. This turn is the next one. */
  after_turn: number;
  /** The agent at that time, with the changes of the replay. */
  agent: AgentRow;
  /** The recorded settings; by default, the agent's current settings. */
  settings?: ChatSettings;
  /** The fallback model that answered the recorded turn. */
  fallback?: FallbackModel | undefined;
  /** The turns to show in its prompt; by default, selected as for any run. */
  promptTurns?: PromptTurns;
  /** Compactions before the turn that the replay repeats, oldest first. */
  compactions: readonly ReplayedCompaction[];
  /** Finds a tool call of the model in the recording. */
  findCall: (
    call: Pick<FunctionCall, 'name' | 'arguments'> & { id: string; round: number },
  ) => ReplayedCall;
  /** True if the turn must fail at a call without a recorded result. */
  failsOnMissingCall: boolean;
}

/** Turns of the replay's session to show in a prompt. */
interface PromptTurns {
  from_turn: number;
  /** True to show the newest summary. */
  summary: boolean;
}

/** Turns of the replay's session to summarize. */
export interface ReplayedCompaction extends PromptTurns {
  up_to_turn: number;
  settings: ChatSettings;
  fallback: FallbackModel | undefined;
}

/** A tool call of a replayed turn. */
interface ReplayedCall {
  /**
   * The recorded id of the same call, in place of the one that the model has drawn: requests of the
   * replay then differ only in what matters. No two calls of a round have the same id.
   */
  call_id: string;
  /** The result for the model; absent where the tool is called. */
  answer?: ReplayedResult;
}

type ReplayedResult = ToolResult & Required<Pick<ToolCalledData, 'replayed'>>;

/** The input of a run and the data prepared for it. The same object is used for the whole run. */
export interface RunRequest extends RunInput, Pick<PreparedRun, 'agent' | 'new_session'> {
  actor: Actor;
  session_id: string;
}
