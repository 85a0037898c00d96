import type { ChatSettings } from '../sessions/turns/chat.ts';
import type { ToolCalledData } from '../sessions/events.ts';
import type { FallbackModel } from '../sessions/turns/promptParts.ts';
import type { FunctionCall, ToolResult } from '../ports/toolbox.ts';
import type { AgentRow } from '../readModels/tables.ts';
import type { Actor } from '../commandHandling/context.ts';
import type { Claim } from '../requests/idempotency.ts';

/** What a run needs before it waits for anything, found once per request. */
export interface PreparedRun {
  agent: AgentRow;
  session_id: string;
  new_session: boolean;
  /** When it was read, in milliseconds of `performance.now()`. */
  preparedAt: number;
}

/** What a client sends. */
export interface RunInput {
  agent_id: string;
  input: string;
  /** A new session when absent. */
  session_id?: string;
  /** Whether the text is read as it comes: only then the model is asked for a stream. */
  deltas?: boolean;
  /** Of a request with an idempotency key. */
  claim?: Claim<PreparedRun> | undefined;
  /** The recorded turn that a replay runs again. */
  replay?: ReplayedTurn;
}

/** A recorded turn that a replay runs again. */
export interface ReplayedTurn {
  replay_id: string;
  /** The recorded turn. */
  turn: number;
  /** The last turn of the replay's session: this one is the next. */
  after_turn: number;
  /** The agent as it was then, with the changes of the replay. */
  agent: AgentRow;
  /** The recorded settings; the agent's current settings if absent. */
  settings?: ChatSettings;
  /** The fallback model that answered the recorded turn. */
  fallback?: FallbackModel | undefined;
  /** The turns that its prompt shows; chosen as for any run if absent. */
  promptTurns?: PromptTurns;
  /** Compactions before the turn that the replay repeats; oldest first. */
  compactions: readonly ReplayedCompaction[];
  /** Answers a tool call from the record; undefined to call the tool. */
  recordedResult: (call: Pick<FunctionCall, 'name' | 'arguments'>) => ReplayedResult | undefined;
  /** Whether the turn fails at a call without a recorded result. */
  failsOnMissingCall: boolean;
}

/** Turns of the replay's session that a prompt shows. */
export interface PromptTurns {
  from_turn: number;
  /** Whether it shows the newest summary. */
  summary: boolean;
}

/** Turns of the replay's session to summarize. */
export interface ReplayedCompaction extends PromptTurns {
  up_to_turn: number;
  settings: ChatSettings;
  fallback: FallbackModel | undefined;
}

export type ReplayedResult = ToolResult & Required<Pick<ToolCalledData, 'replayed'>>;

/** A run's input and what was prepared for it; the same object for the whole run. */
export interface RunRequest extends RunInput, Pick<PreparedRun, 'agent' | 'new_session'> {
  actor: Actor;
  session_id: string;
}
