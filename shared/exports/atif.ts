import {
  collectTools,
  parseToolArguments,
  exportedFailure,
  exportedSteps,
  exportedTexts,
  type ExportedAgent,
  type ExportedCompaction,
  type ExportedSession,
  type ExportedTurn,
  type ModelStep,
  type SessionWriter,
} from './record.ts';
import { jsonSlices } from '../lib/slices.ts';

type Calls = ExportedTurn['tool_calls'];

/** Each call is made when it is written, since its arguments are parsed. */
const toolCalls = (calls: Calls): (() => object)[] =>
  calls.map(({ data }) => () => {
    const { call_id, tool, arguments: text, duration_ms } = data;
    const args = parseToolArguments(data);
    return {
      tool_call_id: call_id,
      function_name: tool,
      arguments: args ?? {},
      extra: { duration_ms, ...(args === undefined && { arguments_text: text }) },
    };
  });

const results = (calls: Calls): object[] =>
  calls.map(({ data: { call_id, result, is_error } }) => ({
    source_call_id: call_id,
    content: result,
    extra: { is_error },
  }));

/** An answer of the model with the results of its tool calls. */
function agentStep(turn: ExportedTurn, { call, text, tool_calls }: ModelStep): object {
  const { recorded_at } = tool_calls[0] ?? turn.ended;
  return {
    timestamp: recorded_at,
    source: 'agent',
    model_name: call?.model ?? turn.started.data.settings.model,
    message: text ?? '',
    ...(tool_calls.length > 0 && {
      tool_calls: toolCalls(tool_calls),
      observation: { results: results(tool_calls) },
    }),
    llm_call_count: 1,
    ...(call && {
      metrics: {
        prompt_tokens: call.tokens.prompt,
        completion_tokens: call.tokens.completion,
        extra: { duration_ms: call.duration_ms },
      },
      extra: { response_id: call.response_id, finish_reason: call.finish_reason },
    }),
  };
}

function turnSteps(turn: ExportedTurn): object[] {
  const { recorded_at, data } = turn.started;
  const failure = exportedFailure(turn);
  return [
    { timestamp: recorded_at, source: 'user', message: data.input, extra: { turn: data.turn } },
    ...exportedSteps(turn).map((step) => agentStep(turn, step)),
    ...(failure
      ? [
          {
            timestamp: turn.ended.recorded_at,
            source: 'system',
            message: failure.message,
            extra: { turn: data.turn, code: failure.code },
          },
        ]
      : []),
  ];
}

const compactionStep = ({ recorded_at, data }: ExportedCompaction): object => ({
  timestamp: recorded_at,
  source: 'system',
  message: data.summary,
  extra: {
    context_management: {
      type: 'compaction',
      from_turn: data.from_turn,
      up_to_turn: data.up_to_turn,
    },
    model_name: data.call.model,
    tokens: data.call.tokens,
    duration_ms: data.call.duration_ms,
  },
});

/**
 * Writes a session as a trajectory in Harbor's format (ATIF-v1.7), in one line. A session without
 * an ended turn gives no line, because a trajectory needs a step.
 */
export function createAtifWriter(session: ExportedSession): SessionWriter {
  const tools = collectTools();
  const totals = { prompt: 0, completion: 0 };
  let last: { turn: ExportedTurn; agent: ExportedAgent | undefined } | undefined;
  let system: string | undefined;
  let steps = 0;

  /** The system message, when the instruction differs from the previous one. */
  function instructed(turn: ExportedTurn, agent: ExportedAgent | undefined): object[] {
    if (!agent || agent.instruction === system) return [];
    system = agent.instruction;
    return [{ timestamp: turn.started.recorded_at, source: 'system', message: system }];
  }

  function stepsIn(turn: ExportedTurn, agent: ExportedAgent | undefined): object[] {
    last = { turn, agent };
    tools.add(turn);
    for (const { call } of exportedSteps(turn)) {
      totals.prompt += call?.tokens.prompt ?? 0;
      totals.completion += call?.tokens.completion ?? 0;
    }
    return [...instructed(turn, agent), ...turnSteps(turn)];
  }

  return {
    *add(record, agent) {
      const recordSteps =
        record.kind === 'turn' ? stepsIn(record, agent) : [compactionStep(record)];
      for (const step of recordSteps) {
        const { session_id } = session;
        yield steps === 0
          ? `{"schema_version":"ATIF-v1.7","session_id":${JSON.stringify(session_id)},"steps":[`
          : ',';
        steps += 1;
        yield* jsonSlices({ step_id: steps, ...step });
      }
    },
    *end() {
      if (!last) return;
      const { agent_id, created_at } = session;
      const { settings, agent_revision } = last.turn.started.data;
      const agent = {
        name: last.agent?.name ?? agent_id,
        version: String(agent_revision),
        model_name: settings.model,
        tool_definitions: tools.list(),
        extra: { agent_id },
      };
      const rest = {
        final_metrics: {
          total_prompt_tokens: totals.prompt,
          total_completion_tokens: totals.completion,
          total_steps: steps,
        },
        extra: { ...exportedTexts(session), created_at },
      };
      yield '],"agent":';
      yield* jsonSlices(agent);
      yield `,${JSON.stringify(rest).slice(1)}\n`;
    },
  };
}
