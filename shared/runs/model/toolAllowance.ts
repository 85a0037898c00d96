import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';

/**
 * What the tool calls of one turn may still take, so that a turn stays readable whatever its model
 * asks for.
 */
export interface ToolAllowance {
  /**
   * So many calls, before the first of them is made. Errors: `tool_error` when the turn has more
   * than `LIMITS.run.toolCalls`.
   */
  take(calls: number): void;
  /**
   * Texts that are recorded. Errors: `tool_error` when the turn's come to more than
   * `LIMITS.run.toolCallBytes`, or to more than there is room for.
   */
  spend(...texts: string[]): void;
}

const tooMany = (what: string): TurnlogError =>
  new TurnlogError('tool_error', `The model called tools too often: ${what}.`);

/**
 * The allowance of a turn that begins. `hold` takes room for so many bytes beside the prompt, all of
 * them at once; false where there is none. A few need none: little tools work in a full process.
 */
export function createToolAllowance(hold: (bytes: number) => boolean): ToolAllowance {
  const { toolCalls, toolCallBytes, toolCallBytesUnheld } = LIMITS.run;
  let calls = 0;
  let bytes = 0;
  return {
    take(more) {
      calls += more;
      if (calls > toolCalls) throw tooMany(`a turn has ${toolCalls} tool calls at most`);
    },
    spend(...texts) {
      for (const text of texts) bytes += Buffer.byteLength(text);
      if (bytes > toolCallBytes)
        throw tooMany(`what a turn's tool calls record is ${toolCallBytes} bytes at most`);
      if (bytes <= toolCallBytesUnheld || hold(bytes)) return;
      throw new TurnlogError(
        'tool_error',
        'There is no room now for all that the tools of this turn have answered. Try again later.',
        { retriable: true },
      );
    },
  };
}
