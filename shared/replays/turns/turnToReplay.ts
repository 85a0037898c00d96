import type { ReplaySettings } from '../events.ts';
import type { ChatSettings } from '../../sessions/turns/chat.ts';
import type {
  SessionCompactedData,
  SessionStartedData,
  ToolCalledData,
} from '../../sessions/events.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import type { AgentRow } from '../../readModels/tables.ts';
import { requireSupported, type AgentCatalogue } from '../../agents/catalogue.ts';
import type { ReplayedCompaction, RunInput, ReplayedTurn } from '../../runs/runRequest.ts';
import { readAgentAt } from './agentAt.ts';
import type { TurnNumbers } from './turnNumbers.ts';
import type { RunningReplay, WholeTurn } from '../comparison/turnPair.ts';

/** A recorded session and the session that replays it. */
export interface SessionPair {
  replay: RunningReplay;
  recorded: SessionStartedData;
  replay_session_id: string;
  numbers: TurnNumbers;
}

/** A recorded turn to replay. */
interface TurnToReplay {
  turn: WholeTurn;
  /** Compactions since the last replayed turn. */
  compactions: readonly SessionCompactedData[];
  /** The last turn in the replay's session. */
  after_turn: number;
}

type Context = StreamSource & { catalogue: AgentCatalogue };

const isOtherAgent = ({ agent_id, agent_revision }: ReplaySettings): boolean =>
  agent_id !== undefined || agent_revision !== undefined;

/**
 * The instruction to use in place of the agent's. A replacement agent keeps its own, unless the
 * settings contain one.
 */
export const chooseInstruction = (
  settings: ReplaySettings,
  recorded: SessionStartedData,
): string | undefined =>
  settings.instruction ?? (isOtherAgent(settings) ? undefined : recorded.instruction);

/**
 * The agent of a replayed turn: the recorded revision, or its replacement. The recorded turn may
 * itself come from a replay or a judge with another model or instruction.
 */
async function agentFor(
  context: Context,
  { replay: { account_id, settings }, recorded }: SessionPair,
  { started }: WholeTurn,
): Promise<AgentRow> {
  const agent = await readAgentAt(context, {
    account_id,
    agent_id: settings.agent_id ?? recorded.agent_id,
    revision: settings.agent_revision ?? started.agent_revision,
  });
  const instruction = chooseInstruction(settings, recorded) ?? agent.instruction;
  const model = isOtherAgent(settings) ? agent.model : started.model;
  return { ...agent, instruction, model: settings.model ?? model };
}

/** The recorded settings, adapted to a replaced model; undefined to use the agent's. */
function settingsFor(
  { catalogue }: Context,
  settings: ReplaySettings,
  agent: AgentRow,
  { started }: WholeTurn,
): ChatSettings | undefined {
  if (isOtherAgent(settings)) return undefined;
  if (settings.model === undefined) return started.settings;
  requireSupported(catalogue, settings.model, undefined);
  const { upstream_model, max_output_tokens } = catalogue.models.find(settings.model)!;
  const { max_completion_tokens: _, ...rest } = started.settings;
  const limits = [agent.parameters?.max_output_tokens, max_output_tokens].filter(
    (limit) => limit !== undefined,
  );
  return {
    ...rest,
    model: upstream_model,
    ...(limits.length > 0 && { max_completion_tokens: Math.min(...limits) }),
  };
}

const compactionsOf = (
  numbers: TurnNumbers,
  compactions: readonly SessionCompactedData[],
): ReplayedCompaction[] =>
  compactions.flatMap((compaction) => {
    const from_turn = numbers.from(compaction.from_turn);
    if (from_turn === undefined) return [];
    const { settings, call, summary_revision } = compaction;
    const up_to_turn = numbers.upTo(compaction.up_to_turn);
    const summary = summary_revision !== undefined;
    return [{ from_turn, up_to_turn, summary, settings, fallback: call.fallback }];
  });

/**
 * Builds the run that replays a turn. Without replacements, its requests equal the recorded ones.
 * Otherwise, its prompt shows the session as in any run.
 */
export async function buildReplayedRun(
  context: Context,
  pair: SessionPair,
  { turn, compactions, after_turn }: TurnToReplay,
): Promise<RunInput> {
  const { replay, replay_session_id, numbers } = pair;
  const { settings } = replay;
  const { started, calls, end } = turn;
  const agent = await agentFor(context, pair, turn);
  const replaySettings = settingsFor(context, settings, agent, turn);
  const exact = replaySettings === started.settings && settings.instruction === undefined;
  const model = end?.type === 'session.turn_completed.v1' ? end.data.calls[0] : undefined;
  const replayed: ReplayedTurn = {
    replay_id: replay.replay_id,
    turn: started.turn,
    after_turn,
    agent,
    ...(replaySettings && { settings: replaySettings }),
    // A chosen model has no recorded fallback.
    ...(settings.model === undefined && !isOtherAgent(settings) && { fallback: model?.fallback }),
    ...(exact && {
      promptTurns: {
        from_turn: numbers.from(started.context_from_turn) ?? after_turn + 1,
        summary: started.context?.compacted !== undefined,
      },
    }),
    compactions: exact ? compactionsOf(numbers, compactions) : [],
    ...findRecordedCalls(settings, calls),
  };
  const { agent_id } = agent;
  return { agent_id, input: started.input, session_id: replay_session_id, replay: replayed };
}

/** No tool name contains a line break, so the key is unambiguous. */
const keyOf = (name: string, args: string): string => `${name}\n${args}`;

/** The id, or one with a number where it is taken. */
function freeId(id: string, isTaken: (id: string) => boolean): string {
  let free = id;
  for (let count = 2; isTaken(free); count += 1) free = `${id}_${count}`;
  return free;
}

/**
 * Finds the tool calls of a replayed turn in the recorded turn. The k-th call of a tool with exactly
 * the same arguments is the k-th recorded one: it has its id and, unless tools are `live`, its
 * result. Further calls follow `missing_tools`.
 */
export function findRecordedCalls(
  { tools, missing_tools }: Pick<ReplaySettings, 'tools' | 'missing_tools'>,
  calls: readonly ToolCalledData[],
): Pick<ReplayedTurn, 'findCall' | 'failsOnMissingCall'> {
  const unusedCalls = Map.groupBy(calls, (call) => keyOf(call.tool, call.arguments));
  const recordedIds = new Set(calls.map(({ call_id }) => call_id));
  const usedIds = new Map<number, Set<string>>();
  return {
    findCall({ id, round, name, arguments: args }) {
      const recorded = unusedCalls.get(keyOf(name, args))?.shift();
      const used = usedIds.get(round) ?? new Set();
      // The model may draw an id that another call was mapped to. Calls of several recorded rounds,
      // which may have one id, may be in one round of the replay.
      const call_id = recorded
        ? freeId(recorded.call_id, (taken) => used.has(taken))
        : freeId(id, (taken) => used.has(taken) || recordedIds.has(taken));
      usedIds.set(round, used.add(call_id));
      if (tools === 'live') return { call_id };
      if (recorded) {
        const { result, is_error } = recorded;
        return { call_id, answer: { result, is_error, replayed: 'recorded' } };
      }
      if (missing_tools === 'live') return { call_id };
      const result = `There is no recorded result of a call of ${name} with these arguments.`;
      return { call_id, answer: { result, is_error: true, replayed: 'missing' } };
    },
    failsOnMissingCall: tools === 'recorded' && missing_tools === 'stop',
  };
}
