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
  /** Of a recorded turn that is run again. */
  replay?: ReplayedTurn;
}

/** What a recorded turn that is run again takes from the record. */
export interface ReplayedTurn {
  replay_id: string;
  /** The recorded turn. */
  turn: number;
  /** The last turn of the replay's session: this one is the next. */
  after_turn: number;
  /** As it was then, with what the replay has put in its place. */
  agent: AgentRow;
  /** As they are recorded; where they are absent, as the agent is asked now. */
  settings?: ChatSettings;
  /** The fallback that the recorded turn was answered by. */
  fallback?: FallbackModel | undefined;
  /** What its prompt shows; where it is absent, as a run chooses that. */
  promptTurns?: PromptTurns;
  /** Summaries that were made before it, and are to be made anew; oldest first. */
  compactions: readonly ReplayedCompaction[];
  /** Answers a tool call in place of the tool; undefined: the tool is called. */
  recordedResult: (call: Pick<FunctionCall, 'name' | 'arguments'>) => ReplayedResult | undefined;
  /** The turn fails at a call that nothing answers. */
  failsOnMissingCall: boolean;
}

/** Turns of the replay's session that a prompt shows. */
export interface PromptTurns {
  from_turn: number;
  /** Whether it shows the newest summary. */
  summary: boolean;
}

/** Turns of the replay's session that are to be summed up. */
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
