import type { Tokens } from '../../domain/schema.ts';
import type { TurnContext } from '../../domain/session/parts.ts';

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

/** What a turn was answered with, as it was recorded. */
interface Completed {
  output: string;
  model: string;
  tool_used: string;
  tokens: Tokens;
  finish_reason: string;
}

/** The answer of a run, the same from its run and from its record. */
export const resultOf = (
  session_id: string,
  { output, model, tool_used, tokens, finish_reason }: Completed,
  context: TurnContext | undefined,
): RunResult => ({
  output,
  session_id,
  metadata: { model, tool_used, tokens, finish_reason, ...(context && { context }) },
});
