import type { TurnComparison } from '../events.ts';
import type { ToolCalledData } from '../../sessions/events.ts';

/** A tool call, as far as it is compared. */
export type ComparedCall = Pick<
  ToolCalledData,
  'round' | 'tool' | 'arguments' | 'result' | 'is_error' | 'replayed'
>;

type Texts = (call: ComparedCall) => string;

const all: Texts = ({ tool, arguments: given, result, is_error }) =>
  JSON.stringify([tool, given, result, is_error]);
const name: Texts = ({ tool }) => tool;

/** Takes pairs that have the same texts out of the two lists, in order; what is left of each. */
function withoutPairs(
  left: readonly ComparedCall[],
  right: readonly ComparedCall[],
  textsOf: Texts,
): [left: ComparedCall[], right: ComparedCall[]] {
  const waiting = Map.groupBy(right, textsOf);
  const unpaired = left.filter((call) => waiting.get(textsOf(call))?.shift() === undefined);
  return [unpaired, [...waiting.values()].flat()];
}

/**
 * The tool calls of a recorded turn beside those of its replay, round by round: those that are the
 * same count for nothing, then one of the same name is `changed`. `unanswered` are those that the log
 * had no result for.
 */
export function compareTools(
  recorded: readonly ComparedCall[],
  replayed: readonly ComparedCall[],
): TurnComparison['tools'] {
  const counts = { added: 0, missing: 0, changed: 0, unanswered: 0 };
  const rounds = [recorded, replayed].map((calls) => Map.groupBy(calls, ({ round }) => round));
  const numbers = new Set(rounds.flatMap((byRound) => [...byRound.keys()]));
  for (const round of numbers) {
    const [before = [], after = []] = rounds.map((byRound) => byRound.get(round));
    const [others, otherReplayed] = withoutPairs(before, after, all);
    const [missing, added] = withoutPairs(others, otherReplayed, name);
    counts.changed += others.length - missing.length;
    counts.missing += missing.length;
    counts.added += added.length;
  }
  counts.unanswered = replayed.filter(({ replayed: from }) => from === 'missing').length;
  return counts;
}
