import type { ChatMessage, ChatRequest, ChatSettings, ToolCallRequest } from './chat.ts';
import type { SessionEvent, ToolCalledData } from '../events.ts';
import type { FallbackModel } from './promptParts.ts';

/** A turn built from its events. */
export interface Turn {
  turn: number;
  input: string;
  tool_calls: ToolCalledData[];
  /**
   * Undefined unless the turn completed. Only turns with an answer are shown to the model again.
   */
  output: string | undefined;
}

/** A summary that replaces older turns in prompts. */
export interface Summary {
  text: string;
  up_to_turn: number;
  /** Turns before the summarized ones that were dropped because they did not fit. */
  dropped: number;
  /**
   * The oldest turn that the summary may cover. For a summary that continues an earlier one, this
   * is the first turn of that summary. Dropped turns may lie in between.
   */
  oldest: number;
  /** The session of the event with the summary. A fork may use the summary of another session. */
  session_id: string;
  revision: number;
}

/** Builds turns from consecutive events, oldest first. Turns whose start is missing are omitted. */
export function turnsFromEvents(events: readonly SessionEvent[]): Turn[] {
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
      ...(round[0]?.reasoning !== undefined && { reasoning_content: round[0].reasoning }),
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

/** The same object in each request, so that its arguments are parsed once (requestForm.ts). */
const callRequests = new WeakMap<ToolCalledData, ToolCallRequest>();

/** A recorded tool call as requests contain it: the same object for the same call. */
export function toolCallRequest(call: ToolCalledData): ToolCallRequest {
  const request = callRequests.get(call) ?? newToolCallRequest(call);
  callRequests.set(call, request);
  return request;
}

const newToolCallRequest = (call: ToolCalledData): ToolCallRequest => ({
  function: { arguments: call.arguments, name: call.tool },
  id: call.call_id,
  type: 'function',
  ...(call.extra !== undefined && { extra: call.extra }),
});

/** The messages of one turn: the input, the tool rounds, and the answer if there is one. */
export const turnMessages = (turn: Turn): ChatMessage[] => [
  { content: turn.input, role: 'user' },
  ...roundMessages(turn.tool_calls),
  ...(turn.output === undefined ? [] : [{ content: turn.output, role: 'assistant' as const }]),
];

/**
 * The system message: the instruction, and the summary if older turns were summarized. Both are in
 * one message, because many models accept only one system message.
 */
export const systemText = (
  instruction: string,
  summary: Pick<Summary, 'text'> | undefined,
): string =>
  summary === undefined
    ? instruction
    : `${instruction}\n\nWhat was said before, in short:\n${summary.text}`;

const COMPACTION_INSTRUCTION =
  'You are given the beginning of a conversation between a user and an assistant. Sum it up for the assistant, who goes on with the conversation and sees your summary in its place. Keep what the user wants, facts, names, numbers, decisions and open questions. Do not answer the user, and do not add anything. Write at most 400 words, in the language of the conversation.';

/** A turn as plain text. A transcript of messages would lead the model to continue it. */
const turnText = (turn: Turn): string =>
  [
    `User: ${turn.input}`,
    ...turn.tool_calls.map(
      ({ tool, arguments: args, result }) => `Tool ${tool}(${args}): ${result}`,
    ),
    `Assistant: ${turn.output ?? ''}`,
  ].join('\n');

/** The request of the model call that summarizes `turns` together with an earlier summary. */
export const compactionRequest = (
  settings: ChatSettings,
  before: Pick<Summary, 'text'> | undefined,
  turns: readonly Turn[],
): ChatRequest => {
  const { tools: _, response_format: __, model, temperature, ...limits } = settings;
  const texts = [...(before ? [`Before: ${before.text}`] : []), ...turns.map(turnText)];
  return {
    ...limits,
    messages: [
      { content: COMPACTION_INSTRUCTION, role: 'system' },
      { content: texts.join('\n\n'), role: 'user' },
    ],
    model,
    ...(temperature !== undefined && { temperature }),
  };
};

/**
 * The request of a model call, built only from recorded events: the instruction, the completed
 * turns of `history` (oldest first), and the current turn with its tool rounds so far. Prompts
 * therefore never contain an unpaired message. Members are in canonical order, which makes hashing
 * the request cheapest.
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
  ...(response_format && { response_format }),
  ...(temperature !== undefined && { temperature }),
  ...(tools && { tools }),
});

/** The request as sent to a fallback model. */
export function fallbackRequest(fallback: FallbackModel, request: ChatRequest): ChatRequest {
  const { max_completion_tokens: _, ...rest } = request;
  const { upstream_model, max_completion_tokens } = fallback;
  return {
    ...(max_completion_tokens !== undefined && { max_completion_tokens }),
    ...rest,
    model: upstream_model,
  };
}
