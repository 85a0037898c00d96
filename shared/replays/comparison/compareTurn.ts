import type { TurnComparison } from '../events.ts';
import type { Tokens } from '../../domain/schema.ts';
import type { ModelCall } from '../../sessions/turns/promptParts.ts';
import { sumCosts, type Cost } from '../../usage/cost.ts';
import type { TurnEnded, WholeTurn } from './turnPair.ts';
import type { ToolCalledData } from '../../sessions/events.ts';

/** The compared parts of a tool call. */
export type ComparedCall = Pick<
  ToolCalledData,
  'round' | 'tool' | 'arguments' | 'result' | 'is_error' | 'replayed'
>;

type Texts = (call: ComparedCall) => string;

const all: Texts = ({ tool, arguments: args, result, is_error }) =>
  JSON.stringify([tool, args, result, is_error]);
const name: Texts = ({ tool }) => tool;

/** Removes pairs of calls with equal texts from both lists, and keeps the order. */
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
 * Compares the tool calls of a recorded turn with those of its replay, round by round. Identical
 * calls are ignored, and further calls with the same name are paired as `changed`. `unanswered`
 * counts calls without a recorded result.
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

/** The compared parts of a turn. */
export type ComparedTurn = Pick<WholeTurn, 'started' | 'calls' | 'end'> & {
  other_tokens?: number;
};

/** The cost of a model's tokens; undefined without a price. */
type CostOf = (model: string, tokens: Tokens) => Cost | undefined;

/** The output of a turn; undefined if it was not answered. */
export const findTurnOutput = ({ end }: Pick<WholeTurn, 'end'>): string | undefined =>
  end?.type === 'session.turn_completed.v1' ? end.data.output : undefined;

/** Why a turn was not answered; undefined if it was answered or is open. */
export function findFailureCode(end: TurnEnded | undefined): string | undefined {
  if (!end || end.type === 'session.turn_completed.v1') return undefined;
  return end.type === 'session.turn_failed.v1'
    ? end.data.code
    : (end.data.cause ?? end.data.reason);
}

const callsOf = ({ end }: ComparedTurn): readonly ModelCall[] =>
  end && 'calls' in end.data ? end.data.calls : [];

/** The cost of a turn; undefined if one of its calls has no price. */
function costOfTurn(turn: ComparedTurn, costOf: CostOf): Cost | undefined {
  const costs = callsOf(turn).map((call) =>
    costOf(call.fallback?.model ?? turn.started.model, call.tokens),
  );
  const knownCosts = costs.filter((cost) => cost !== undefined);
  return knownCosts.length === costs.length ? sumCosts(knownCosts) : undefined;
}

function sideOf(turn: ComparedTurn, costOf: CostOf): TurnComparison['recorded'] {
  const cost = costOfTurn(turn, costOf);
  const { tokens, duration_ms } = (turn.end?.data ?? {}) as {
    tokens?: Tokens;
    duration_ms?: number;
  };
  return {
    model: turn.started.model,
    ...(tokens && { tokens }),
    ...(duration_ms !== undefined && { duration_ms }),
    ...(cost && { cost }),
  };
}

const hashesOf = (turn: ComparedTurn): string =>
  callsOf(turn)
    .map(({ request_sha256 }) => request_sha256)
    .join();

function outcomeOf(
  recorded: ComparedTurn,
  replayed: ComparedTurn | undefined,
): TurnComparison['outcome'] {
  const [before, after] = [findTurnOutput(recorded), replayed && findTurnOutput(replayed)];
  if (before === undefined || !replayed) return 'skipped';
  if (after === undefined) return 'failed';
  return before === after ? 'same' : 'changed';
}

const NO_TOOLS = { added: 0, missing: 0, changed: 0, unanswered: 0 };

/** Compares a recorded turn with its replay, if any. Checks are not included. */
export function compareTurn(
  recorded: ComparedTurn,
  replayed: ComparedTurn | undefined,
  costOf: CostOf,
): TurnComparison {
  const outcome = outcomeOf(recorded, replayed);
  const { turn } = recorded.started;
  const beside = { turn, outcome, recorded: sideOf(recorded, costOf), checks: [] };
  if (!replayed) return { ...beside, tools: NO_TOOLS };
  const code = outcome === 'failed' ? findFailureCode(replayed.end) : undefined;
  return {
    ...beside,
    replay_turn: replayed.started.turn,
    ...(code !== undefined && { code }),
    requests: hashesOf(recorded) === hashesOf(replayed) ? 'same' : 'changed',
    tools: compareTools(recorded.calls, replayed.calls),
    replayed: sideOf(replayed, costOf),
    ...(replayed.other_tokens && { other_tokens: replayed.other_tokens }),
  };
}
