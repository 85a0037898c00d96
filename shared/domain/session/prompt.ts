import type { ChatMessage, ChatRequest, ChatSettings, ToolCallRequest } from './chat.ts';
import type { SessionEvent, ToolCalledData } from './events.ts';

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
  { model, tools, ...limits }: ChatSettings,
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
  ...(tools && { tools }),
});
