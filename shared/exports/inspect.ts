import {
  parseToolArguments,
  exportedFailure,
  exportedOutput,
  exportedSteps,
  exportedTexts,
  type ExportedAgent,
  type ExportedRecord,
  type ExportedSession,
  type ExportedTurn,
  type SessionWriter,
} from './record.ts';
import type { ModelCall } from '../sessions/turns/promptParts.ts';
import type { ToolCalledData } from '../sessions/events.ts';
import { jsonSlices, textAsJson } from '../lib/slices.ts';
import { LIMITS } from '../limits.ts';

interface Usage {
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
}

const usageOf = ({ tokens }: ModelCall): Usage => ({
  input_tokens: tokens.prompt,
  output_tokens: tokens.completion,
  total_tokens: tokens.total,
});

/** Inspect's names of finish reasons. A map, because providers choose the reasons. */
const STOP_REASONS: ReadonlyMap<string, string> = new Map([
  ['stop', 'stop'],
  ['length', 'max_tokens'],
  ['tool_calls', 'tool_calls'],
  ['content_filter', 'content_filter'],
]);

function toolCall(data: ToolCalledData): object {
  const args = parseToolArguments(data);
  return {
    id: data.call_id,
    function: data.tool,
    arguments: args ?? {},
    ...(args === undefined && { parse_error: `Not read as a JSON object: ${data.arguments}` }),
    type: 'function',
  };
}

const toolMessage = ({ call_id, tool, result, is_error, duration_ms }: ToolCalledData): object => ({
  role: 'tool',
  content: result,
  tool_call_id: call_id,
  function: tool,
  ...(is_error && { error: { type: 'unknown', message: result } }),
  metadata: { duration_ms },
});

/** Stands for models beyond LIMITS.export.models. */
const OTHER_MODELS = 'others';

/** The messages of a turn. If it has no answer, the metadata of its input message has the error. */
function turnMessages(turn: ExportedTurn): object[] {
  const { recorded_at, data } = turn.started;
  const error = exportedFailure(turn);
  const about = { turn: data.turn, started_at: recorded_at, agent_revision: data.agent_revision };
  return [
    { role: 'user', content: data.input, metadata: { ...about, ...(error && { error }) } },
    ...exportedSteps(turn).flatMap(({ call, text, tool_calls }) => [
      {
        role: 'assistant',
        content: text ?? '',
        source: 'generate',
        ...(tool_calls.length > 0 && {
          // Each is made when it is written, since its arguments are parsed.
          tool_calls: tool_calls.map((toolUse) => () => toolCall(toolUse.data)),
        }),
        model: call?.model ?? data.settings.model,
        ...(call && {
          metadata: {
            response_id: call.response_id,
            duration_ms: call.duration_ms,
            usage: usageOf(call),
          },
        }),
      },
      ...tool_calls.map((toolUse) => toolMessage(toolUse.data)),
    ]),
  ];
}

/** The last answer as the output of an Inspect sample. */
function outputIn(turn: ExportedTurn | undefined): object {
  const output = turn && exportedOutput(turn);
  if (!turn || output === undefined) return { choices: [] };
  const call = exportedSteps(turn).at(-1)?.call;
  const model = call?.model ?? turn.started.data.settings.model;
  const stop_reason = STOP_REASONS.get(call?.finish_reason ?? '') ?? 'unknown';
  const message = { role: 'assistant', content: output, source: 'generate', model };
  return { model, choices: [{ message, stop_reason }], ...(call && { usage: usageOf(call) }) };
}

/** The beginning of a log, up to the messages of its only sample. */
function* headOf(session: ExportedSession, first: ExportedTurn): Generator<string> {
  const { session_id, agent_id, created_at } = session;
  const { input, settings } = first.started.data;
  const log = {
    version: 2,
    status: 'success',
    eval: {
      eval_id: session_id,
      run_id: session_id,
      created: created_at,
      task: 'turnlog',
      task_id: agent_id,
      dataset: { name: agent_id, samples: 1, sample_ids: [session_id] },
      model: settings.model,
      config: {},
      metadata: { agent_id, ...exportedTexts(session) },
    },
  };
  yield `${JSON.stringify(log).slice(0, -1)},"samples":[{"id":${JSON.stringify(session_id)},"epoch":1,"input":`;
  yield* textAsJson(input);
  yield ',"target":"","messages":[';
}

/**
 * Writes a session as an EvalLog of Inspect AI with one sample, in one line. A session without an
 * ended turn gives no line.
 */
export function createInspectWriter(session: ExportedSession): SessionWriter {
  /** A map, because providers choose the names of models: `__proto__` would be no member. */
  const usageByModel = new Map<string, Usage>();
  let ends: { first: ExportedTurn; last: ExportedTurn } | undefined;
  let system: string | undefined;
  let messages = 0;

  function count(call: ModelCall): void {
    const usage = usageOf(call);
    const isNew = !usageByModel.has(call.model);
    const model = isNew && usageByModel.size >= LIMITS.export.models ? OTHER_MODELS : call.model;
    const sum = usageByModel.get(model);
    if (!sum) usageByModel.set(model, usage);
    else for (const name of Object.keys(usage) as (keyof Usage)[]) sum[name] += usage[name];
  }

  function messagesIn(record: ExportedRecord, agent: ExportedAgent | undefined): object[] {
    if (record.kind === 'compaction') {
      count(record.data.call);
      return [];
    }
    for (const { call } of exportedSteps(record)) if (call) count(call);
    const ofTurn = turnMessages(record);
    if (!agent || agent.instruction === system) return ofTurn;
    system = agent.instruction;
    return [{ role: 'system', content: system }, ...ofTurn];
  }

  return {
    *add(record, agent) {
      const newMessages = messagesIn(record, agent);
      if (record.kind === 'turn') {
        if (!ends) yield* headOf(session, record);
        ends = { first: ends?.first ?? record, last: record };
      }
      for (const message of newMessages) {
        messages += 1;
        const id = `${session.session_id}/${messages}`;
        if (messages > 1) yield ',';
        yield* jsonSlices({ id, ...message });
      }
    },
    *end() {
      if (!ends) return;
      const { first, last } = ends;
      const [started_at, completed_at] = [first.started.recorded_at, last.ended.recorded_at];
      const failure = exportedFailure(last);
      const error = failure && {
        message: `${failure.code}: ${failure.message}`,
        traceback: '',
        traceback_ansi: '',
      };
      const model_usage = Object.fromEntries(usageByModel);
      const sample = {
        output: outputIn(last),
        model_usage,
        started_at,
        completed_at,
        uuid: session.session_id,
        ...(error && { error }),
      };
      const stats = JSON.stringify({ started_at, completed_at, model_usage });
      yield `],${JSON.stringify(sample).slice(1)}],"stats":${stats}}\n`;
    },
  };
}
