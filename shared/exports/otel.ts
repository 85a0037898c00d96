import {
  chatAttributes,
  CLIENT,
  INTERNAL,
  requestAttributes,
  spanText,
  usageOf,
  type Span,
} from './otelSpans.ts';
import { answerMessage, finishReason, textMessage, toolMessages } from './otelValues.ts';
import {
  exportedFailure,
  exportedOutput,
  exportedSteps,
  type ExportedAgent,
  type ExportedCompaction,
  type ExportedRecord,
  type ExportedSession,
  type ExportedTurn,
  type ModelStep,
  type SessionWriter,
} from './record.ts';

const HEAD =
  '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"turnlog"}}]},"scopeSpans":[{"scope":{"name":"turnlog.export"},"spans":[';
const TAIL = ']}]}]}\n';

/** The tool calls of a step. The log has only their durations, so they start at the same time. */
const toolSpans = ({ tool_calls }: ModelStep, round: number, startMs: number): Span[] =>
  tool_calls.map(({ data }, index) => ({
    id: `tool/${round}/${index}`,
    name: `execute_tool ${data.tool}`,
    kind: INTERNAL,
    startMs,
    endMs: startMs + data.duration_ms,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': data.tool,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': data.call_id,
      'gen_ai.tool.call.arguments': data.arguments,
      'gen_ai.tool.call.result': data.result,
    },
    failure: data.is_error ? { code: 'tool_failed' } : undefined,
  }));

/** The spans of the model and tool calls of a turn, in order from its beginning. */
function* innerSpans(session: ExportedSession, turn: ExportedTurn): Generator<Span> {
  const { settings, input: userText } = turn.started.data;
  let ms = Date.parse(turn.started.recorded_at);
  let input = [textMessage('user', userText)];
  for (const [round, step] of exportedSteps(turn).entries()) {
    const { call } = step;
    const endMs = ms + (call?.duration_ms ?? 0);
    yield {
      id: `chat/${round}`,
      name: `chat ${requestAttributes(settings, call)['gen_ai.request.model']}`,
      kind: CLIENT,
      startMs: ms,
      endMs,
      attributes: chatAttributes({ session, settings, call, input, output: [answerMessage(step)] }),
    };
    const tools = toolSpans(step, round, endMs);
    yield* tools;
    ms = Math.max(endMs, ...tools.map((tool) => tool.endMs));
    input = toolMessages(step);
  }
}

function agentSpan(
  session: ExportedSession,
  turn: ExportedTurn,
  agent: ExportedAgent | undefined,
): Omit<Span, 'endMs'> {
  const { input, settings, agent_revision, turn: number, context } = turn.started.data;
  const output = exportedOutput(turn);
  const { data } = turn.ended;
  return {
    id: 'turn',
    name: `invoke_agent${agent ? ` ${agent.name}` : ''}`,
    kind: INTERNAL,
    startMs: Date.parse(turn.started.recorded_at),
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      ...requestAttributes(settings, undefined),
      ...usageOf('tokens' in data ? data.tokens : undefined),
      'gen_ai.agent.id': turn.ran.agent_id,
      'gen_ai.agent.name': agent?.name,
      'gen_ai.agent.version': String(agent_revision),
      'gen_ai.conversation.id': session.session_id,
      'gen_ai.system_instructions': agent && [{ type: 'text', content: agent.instruction }],
      'gen_ai.tool.definitions': settings.tools?.map(({ type, function: of }) => ({ type, ...of })),
      'gen_ai.input.messages': [textMessage('user', input)],
      'gen_ai.output.messages':
        output === undefined
          ? undefined
          : [{ ...textMessage('assistant', output), finish_reason: endOf(turn) }],
      'turnlog.turn': number,
      'turnlog.context.turns': context?.turns,
    },
    failure: exportedFailure(turn),
  };
}

const endOf = ({ ended: { data } }: ExportedTurn): string =>
  finishReason('finish_reason' in data ? data.finish_reason : '');

/** The spans of a turn. Its own span comes last and ends no earlier than the inner spans. */
function* turnText(
  session: ExportedSession,
  turn: ExportedTurn,
  agent: ExportedAgent | undefined,
): Generator<string> {
  const trace = `${session.session_id}/${turn.started.data.turn}`;
  const turnSpan = agentSpan(session, turn, agent);
  const { data, recorded_at } = turn.ended;
  let endMs =
    'duration_ms' in data
      ? turnSpan.startMs + data.duration_ms
      : Math.max(turnSpan.startMs, Date.parse(recorded_at));
  for (const span of innerSpans(session, turn)) {
    endMs = Math.max(endMs, span.endMs);
    yield* spanText(trace, turnSpan.id, span);
    yield ',';
  }
  yield* spanText(trace, undefined, { ...turnSpan, endMs });
}

/** The model call that summarised older turns, as a separate trace. */
function compactionText(
  session: ExportedSession,
  compaction: ExportedCompaction,
): Generator<string> {
  const { recorded_at, data } = compaction;
  const { call, settings, summary, from_turn, up_to_turn } = data;
  const output = [
    { ...textMessage('assistant', summary), finish_reason: finishReason(call.finish_reason) },
  ];
  const endMs = Date.parse(recorded_at);
  return spanText(`${session.session_id}/compaction/${up_to_turn}`, undefined, {
    id: 'chat',
    name: `chat ${requestAttributes(settings, call)['gen_ai.request.model']}`,
    kind: CLIENT,
    startMs: endMs - call.duration_ms,
    endMs,
    attributes: {
      ...chatAttributes({ session, settings, call, input: [], output }),
      'gen_ai.input.messages': undefined,
      // Summaries are requested without a response format, unlike the answers of the turns.
      'gen_ai.output.type': undefined,
      'turnlog.compaction.from_turn': from_turn,
      'turnlog.compaction.up_to_turn': up_to_turn,
    },
  });
}

/**
 * Writes a session as traces in OTLP/JSON with the semantic conventions for GenAI: one line and one
 * trace for each ended turn and for each summary of older turns.
 */
export const createOtelWriter = (session: ExportedSession): SessionWriter => ({
  *add(record: ExportedRecord, agent) {
    yield HEAD;
    if (record.kind === 'turn') yield* turnText(session, record, agent);
    else yield* compactionText(session, record);
    yield TAIL;
  },
  end: () => '',
});
