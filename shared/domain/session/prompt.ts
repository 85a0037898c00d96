import type { ResponseFormat } from '../agent/parameters.ts';
import type {
  ChatMessage,
  ChatRequest,
  ChatResponseFormat,
  ChatSettings,
  ToolCallRequest,
} from './chat.ts';
import type { FallbackModel, SessionEvent, ToolCalledData } from './events.ts';

/** A turn as far as its events go. */
export interface Turn {
  turn: number;
  input: string;
  tool_calls: ToolCalledData[];
  /**
   * Undefined unless the turn completed: a turn without an answer is never shown to the model
   * again.
   */
  output: string | undefined;
}

/** The turns in consecutive events, oldest first, without those whose start is missing. */
export function turnsOf(events: readonly SessionEvent[]): Turn[] {
  const turns: Turn[] = [];
  for (const event of events) {
    if (event.type === 'session.turn_started.v1')
      turns.push({
        turn: event.data.turn,
        input: event.data.input,
        tool_calls: [],
        output: undefined,
      });
    const turn = turns.at(-1);
    if (!turn) continue;
    if (event.type === 'session.tool_called.v1') turn.tool_calls.push(event.data);
    if (event.type === 'session.turn_completed.v1') turn.output = event.data.output;
  }
  return turns;
}

/** The messages of a turn's tool rounds: each call is followed by its result. */
function roundMessages(calls: readonly ToolCalledData[]): ChatMessage[] {
  const rounds = Map.groupBy(calls, (call) => call.round);
  return [...rounds.values()].flatMap((round): ChatMessage[] => [
    {
      content: round[0]?.content ?? null,
      role: 'assistant',
      tool_calls: round.map(toolCallRequest),
    },
    ...round.map((call): ChatMessage => ({
      content: call.result,
      role: 'tool',
      tool_call_id: call.call_id,
    })),
  ]);
}

const toolCallRequest = (call: ToolCalledData): ToolCallRequest => ({
  function: { arguments: call.arguments, name: call.tool },
  id: call.call_id,
  type: 'function',
});

/**
 * The messages that stand for one turn: what was asked, the tool rounds, and the answer if there is
 * one.
 */
export const turnMessages = (turn: Turn): ChatMessage[] => [
  { content: turn.input, role: 'user' },
  ...roundMessages(turn.tool_calls),
  ...(turn.output === undefined ? [] : [{ content: turn.output, role: 'assistant' as const }]),
];

/**
 * The exact body of a model call, from recorded facts alone: the instruction, the completed turns
 * of `history` (oldest first), then the current turn with the tool rounds made so far. Prompts
 * therefore never hold an unpaired message. Members stand in canonical order, in which the request's
 * hash costs least.
 */
export const chatRequest = (
  { model, response_format, temperature, tools, ...limits }: ChatSettings,
  instruction: string,
  history: readonly Turn[],
  current: Turn,
): ChatRequest => ({
  ...limits,
  messages: [
    { content: instruction, role: 'system' },
    ...[...history.filter((turn) => turn.output !== undefined), current].flatMap(turnMessages),
  ],
  model,
  ...(response_format && { response_format: requestFormat(response_format) }),
  ...(temperature !== undefined && { temperature }),
  ...(tools && { tools }),
});

/**
 * What a request says of the answer's form. A schema goes as it was given: the order of its members
 * is the order of the answer's.
 */
export function requestFormat({ type, json_schema }: ResponseFormat): ChatResponseFormat {
  if (type !== 'json_schema') return { type };
  const { name, schema, strict } = json_schema!;
  return {
    json_schema: {
      name,
      schema: JSON.parse(schema) as Record<string, unknown>,
      ...(strict !== undefined && { strict }),
    },
    type,
  };
}

/** The same request as it is sent to a fallback. */
export function requestOf(fallback: FallbackModel, request: ChatRequest): ChatRequest {
  const { max_completion_tokens: _, ...rest } = request;
  const { upstream_model, max_completion_tokens } = fallback;
  return {
    ...(max_completion_tokens !== undefined && { max_completion_tokens }),
    ...rest,
    model: upstream_model,
  };
}
