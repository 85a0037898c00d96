import type { TurnComparison } from '../../domain/replay/events.ts';
import type { Tokens } from '../../domain/schema.ts';
import type { SessionEvent } from '../../domain/session/events.ts';
import type { ModelCall } from '../../domain/session/parts.ts';
import { sumOfCosts, type Cost } from '../../queries/cost.ts';
import { compareTools, type ComparedCall } from './compareTools.ts';

type TurnEvent = Extract<SessionEvent, { data: { turn: number } }>;

/** A turn, as far as it is compared; its texts stand open. */
export interface ComparedTurn {
  turn: number;
  /** Id of the model in the registry. */
  model: string;
  status: 'running' | 'completed' | 'failed' | 'interrupted';
  input: string;
  output: string | undefined;
  /** Why it was not completed. */
  code: string | undefined;
  tokens: Tokens | undefined;
  duration_ms: number | undefined;
  tool_calls: ComparedCall[];
  calls: readonly ModelCall[];
}

/** What tokens of a model cost; undefined where nobody knows. */
export type CostOf = (model: string, tokens: Tokens) => Cost | undefined;

function after(turn: ComparedTurn | undefined, event: TurnEvent): ComparedTurn {
  if (event.type === 'session.turn_started.v1') {
    const { turn: number, model, input } = event.data;
    return {
      turn: number,
      model,
      status: 'running',
      input,
      output: undefined,
      code: undefined,
      tokens: undefined,
      duration_ms: undefined,
      tool_calls: [],
      calls: [],
    };
  }
  if (!turn) throw new Error('The events of a turn begin with its start.');
  switch (event.type) {
    case 'session.tool_called.v1':
      return { ...turn, tool_calls: [...turn.tool_calls, event.data] };
    case 'session.turn_completed.v1': {
      const { output, tokens, duration_ms, calls } = event.data;
      return { ...turn, status: 'completed', output, tokens, duration_ms, calls };
    }
    case 'session.turn_failed.v1': {
      const { code, tokens, calls } = event.data;
      return { ...turn, status: 'failed', code, tokens, calls };
    }
    case 'session.turn_interrupted.v1':
      return { ...turn, status: 'interrupted', code: event.data.cause ?? event.data.reason };
    default:
      return event satisfies never;
  }
}

/** A turn from its events, the first of which is its start. Errors: a plain Error. */
export function comparedTurn(events: readonly TurnEvent[]): ComparedTurn {
  const turn = events.reduce<ComparedTurn | undefined>(after, undefined);
  if (!turn) throw new Error('A turn has events.');
  return turn;
}

/** What a turn cost: nobody knows it where one of its calls has no price. */
function costOfTurn({ model, calls }: ComparedTurn, costOf: CostOf): Cost | undefined {
  const costs = calls.map((call) => costOf(call.fallback?.model ?? model, call.tokens));
  const known = costs.filter((cost) => cost !== undefined);
  return known.length === costs.length ? sumOfCosts(known) : undefined;
}

function sideOf(turn: ComparedTurn, costOf: CostOf): TurnComparison['recorded'] {
  const cost = costOfTurn(turn, costOf);
  return {
    model: turn.model,
    ...(turn.tokens && { tokens: turn.tokens }),
    ...(turn.duration_ms !== undefined && { duration_ms: turn.duration_ms }),
    ...(cost && { cost: cost.amount }),
  };
}

const hashesOf = ({ calls }: ComparedTurn): string =>
  calls.map(({ request_sha256 }) => request_sha256).join();

function outcomeOf(
  recorded: ComparedTurn,
  replayed: ComparedTurn | undefined,
): TurnComparison['outcome'] {
  if (recorded.status !== 'completed' || !replayed) return 'skipped';
  if (replayed.status !== 'completed') return 'failed';
  return recorded.output === replayed.output ? 'same' : 'changed';
}

const NO_TOOLS = { added: 0, missing: 0, changed: 0, unanswered: 0 };

/** A recorded turn beside its replay, which is left out where there is none; without checks. */
export function compareTurn(
  recorded: ComparedTurn,
  replayed: ComparedTurn | undefined,
  costOf: CostOf,
): TurnComparison {
  const outcome = outcomeOf(recorded, replayed);
  const beside = { turn: recorded.turn, outcome, recorded: sideOf(recorded, costOf), checks: [] };
  if (!replayed) return { ...beside, tools: NO_TOOLS };
  const code = outcome === 'failed' ? replayed.code : undefined;
  return {
    ...beside,
    replay_turn: replayed.turn,
    ...(code !== undefined && { code }),
    requests: hashesOf(recorded) === hashesOf(replayed) ? 'same' : 'changed',
    tools: compareTools(recorded.tool_calls, replayed.tool_calls),
    replayed: sideOf(replayed, costOf),
  };
}
