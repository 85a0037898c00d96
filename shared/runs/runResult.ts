import type { Tokens } from '../domain/schema.ts';
import type { TurnContext } from '../sessions/turns/promptParts.ts';
import type { Position } from '../ports/eventStore.ts';

export interface RunResult {
  output: string;
  session_id: string;
  metadata: {
    model: string;
    tool_used: string;
    tokens: Tokens;
    finish_reason: string;
    /** Absent for turns of releases that did not record it. */
    context?: TurnContext;
  };
}

/** How a turn ended: what it is answered with, and where that stands. */
export interface RecordedResult {
  answer: RunResult | Error;
  position: Position;
}

/** What a turn was answered with, as it was recorded. */
interface Completed {
  output: string;
  model: string;
  tool_used: string;
  tokens: Tokens;
  finish_reason: string;
}

/**
 * The answer of a run, the same from its run and from its record: its members stand in the same
 * order either way.
 */
export const runResultOf = (
  session_id: string,
  { output, model, tool_used, tokens: { prompt, completion, total }, finish_reason }: Completed,
  context: TurnContext | undefined,
): RunResult => ({
  output,
  session_id,
  metadata: {
    model,
    tool_used,
    tokens: { prompt, completion, total },
    finish_reason,
    ...(context && { context: contextOf(context) }),
  },
});

const contextOf = ({ turns, dropped, compacted }: TurnContext): TurnContext => ({
  turns,
  dropped,
  ...(compacted !== undefined && { compacted }),
});
