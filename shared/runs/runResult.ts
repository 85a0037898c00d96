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
    /** Absent for turns of old releases, which did not record it. */
    context?: TurnContext;
  };
}

/** The response for an ended turn, and the position of its end. */
export interface RecordedResult {
  answer: RunResult | Error;
  position: Position;
}

/** A completed turn as recorded. */
interface Completed {
  output: string;
  model: string;
  tool_used: string;
  tokens: Tokens;
  finish_reason: string;
}

/**
 * The response for a run. It is identical whether it comes from the run or from the record,
 * including the order of its members.
 */
export const toRunResult = (
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
