import type { SessionEnd, TurnComparison } from './events.ts';
import type { Tokens } from '../domain/schema.ts';
import { sumCosts, type Cost } from '../usage/cost.ts';

/** Totals of turns. */
interface TurnTotals {
  tokens: Tokens;
  duration_ms: number;
  /** Cost of the turns with a known cost; null if there are none. */
  cost: Cost | null;
  /** Turns without a known cost. */
  unpriced: number;
}

/** Totals of a replay. */
export interface ReplaySums {
  /** All sessions, and ended sessions by status. */
  sessions: Record<'total' | SessionEnd['status'], number>;
  turns: Record<'total' | TurnComparison['outcome'], number>;
  requests: { same: number; changed: number };
  tools: TurnComparison['tools'];
  checks: { passed: number; failed: number };
  /** Totals of replayed turns, as recorded and as replayed. */
  recorded: TurnTotals;
  replayed: TurnTotals;
  /** Tokens of the judging models. */
  judge_tokens: number;
  /**
   * Tokens of repeated attempts and of compactions. They count towards the budget like all other
   * tokens.
   */
  other_tokens: number;
}

const nothing = (): TurnTotals => ({
  tokens: { prompt: 0, completion: 0, total: 0 },
  duration_ms: 0,
  cost: null,
  unpriced: 0,
});

/** The totals of a replay that has just started. */
export const emptySums = (sessions: number, turns: number): ReplaySums => ({
  sessions: { total: sessions, completed: 0, stopped: 0, failed: 0 },
  turns: { total: turns, same: 0, changed: 0, failed: 0, skipped: 0 },
  requests: { same: 0, changed: 0 },
  tools: { added: 0, missing: 0, changed: 0, unanswered: 0 },
  checks: { passed: 0, failed: 0 },
  recorded: nothing(),
  replayed: nothing(),
  judge_tokens: 0,
  other_tokens: 0,
});

/** Adds numbers by name. */
const added = <Counts extends Record<string, number>>(sums: Counts, more: Counts): Counts =>
  Object.fromEntries(Object.entries(sums).map(([name, n]) => [name, n + more[name]!])) as Counts;

function withCost({ cost, unpriced }: TurnTotals, more: Cost | undefined) {
  // Prices of another currency can't be added. They occur when the registry has changed.
  if (!more || (cost && cost.currency !== more.currency)) return { cost, unpriced: unpriced + 1 };
  return { cost: sumCosts(cost ? [cost, more] : [more])!, unpriced };
}

const tookMore = (took: TurnTotals, side: TurnComparison['recorded']): TurnTotals => ({
  tokens: added(took.tokens, side.tokens ?? nothing().tokens),
  duration_ms: took.duration_ms + (side.duration_ms ?? 0),
  ...withCost(took, side.cost),
});

/** Adds one turn to the totals. */
export function addTurn(sums: ReplaySums, turn: TurnComparison): ReplaySums {
  const { outcome, requests, replayed, checks, other_tokens = 0 } = turn;
  const failed = checks.filter(({ passed }) => !passed).length;
  return {
    ...sums,
    turns: { ...sums.turns, [outcome]: sums.turns[outcome] + 1 },
    requests: requests
      ? { ...sums.requests, [requests]: sums.requests[requests] + 1 }
      : sums.requests,
    tools: added(sums.tools, turn.tools),
    checks: added(sums.checks, { passed: checks.length - failed, failed }),
    ...(replayed && {
      recorded: tookMore(sums.recorded, turn.recorded),
      replayed: tookMore(sums.replayed, replayed),
    }),
    judge_tokens:
      sums.judge_tokens + checks.reduce((total, { tokens }) => total + (tokens?.total ?? 0), 0),
    other_tokens: sums.other_tokens + other_tokens,
  };
}
