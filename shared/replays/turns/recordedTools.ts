import type { ReplaySettings } from '../events.ts';
import type { ToolCalledData } from '../../sessions/events.ts';
import type { ReplayedTurn } from '../../runs/runRequest.ts';

/** What stands for the arguments in a key: no name of a tool holds it. */
const keyOf = (name: string, args: string): string => `${name}\n${args}`;

/**
 * Answers the tool calls of a replayed turn by those of the recorded one: the k-th call of a name
 * with the same arguments, to the letter, has the k-th result. A call beyond them is answered by
 * policy; undefined where the tool itself is to be called.
 */
export function answerFromRecording(
  { tools, missing_tools }: Pick<ReplaySettings, 'tools' | 'missing_tools'>,
  calls: readonly ToolCalledData[],
): Pick<ReplayedTurn, 'recordedResult' | 'failsOnMissingCall'> {
  if (tools === 'live') return { recordedResult: () => undefined, failsOnMissingCall: false };
  const left = Map.groupBy(calls, (call) => keyOf(call.tool, call.arguments));
  return {
    recordedResult({ name, arguments: args }) {
      const recorded = left.get(keyOf(name, args))?.shift();
      if (recorded) {
        const { result, is_error } = recorded;
        return { result, is_error, replayed: 'recorded' };
      }
      if (missing_tools === 'live') return undefined;
      const result = `There is no recorded result of a call of ${name} with these arguments.`;
      return { result, is_error: true, replayed: 'missing' };
    },
    failsOnMissingCall: missing_tools === 'stop',
  };
}
