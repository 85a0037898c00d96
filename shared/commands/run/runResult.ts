import type { Tokens } from '../../domain/schema.ts';
import type { TurnCompletedData } from '../../domain/session/events.ts';
import type { Position } from '../../ports/eventStore.ts';

/** What a completed run is answered with. */
export interface RunResult {
  output: string;
  session_id: string;
  metadata: { model: string; tool_used: string; tokens: Tokens; finish_reason: string };
}

/** How a turn ended: what it is answered with, and where that stands. */
export interface RecordedEnd {
  answer: RunResult | Error;
  position: Position;
}

/** Of what is recorded, or is about to be: its members stand in the same order either way. */
export const resultOf = (
  session_id: string,
  { output, model, tool_used, tokens, finish_reason }: Omit<TurnCompletedData, 'turn'>,
): RunResult => {
  const { prompt, completion, total } = tokens;
  return {
    output,
    session_id,
    metadata: { model, tool_used, tokens: { prompt, completion, total }, finish_reason },
  };
};
