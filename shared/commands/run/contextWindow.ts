import type { LRUCache } from 'lru-cache';
import type { ChatMessage, ChatSettings } from '../../domain/session/chat.ts';
import { turnMessages, type Turn } from '../../domain/session/prompt.ts';
import { TurnlogError } from '../../errors.ts';
import type { ModelInfo } from '../../ports/chatModel.ts';
import type { TokenCounter } from '../../ports/tokenCounter.ts';
import type { RunRequest } from './request.ts';

/**
 * What a chat format adds around each message, rounded up (OpenAI's cookbook counts 3 and a name).
 */
const MESSAGE_OVERHEAD = 4;
/** Room kept for the answer where the registry names no limit of its own. */
const DEFAULT_OUTPUT_RESERVE = 4_096;

export interface TokenBudget {
  counter: TokenCounter;
  /** Tokens of turns that have ended, by session and turn: they never change. */
  turnTokens: LRUCache<string, number>;
}

const texts = (messages: readonly ChatMessage[]): string[] =>
  messages.flatMap((message) => [
    message.content ?? '',
    ...('tool_calls' in message
      ? (message.tool_calls ?? []).map((call) => call.function.name + call.function.arguments)
      : []),
  ]);

/** No tokenizer in use makes more tokens than bytes, so this bound often spares the real count. */
const byteBound = (messages: readonly ChatMessage[]): number =>
  texts(messages).reduce(
    (sum, text) => sum + Buffer.byteLength(text),
    messages.length * MESSAGE_OVERHEAD,
  );

/** Tokens of messages in a prompt, as the tokenizer counts them. */
export async function countMessages(
  counter: TokenCounter,
  messages: readonly ChatMessage[],
): Promise<number> {
  let sum = messages.length * MESSAGE_OVERHEAD;
  for (const text of texts(messages)) sum += await counter.count(text);
  return sum;
}

/**
 * Tokens that are left for earlier turns beside the instruction, the tools and the input.
 * Errors: `invalid_request` when these alone don't fit the model's context.
 */
export async function historyBudget(
  { counter }: TokenBudget,
  model: ModelInfo,
  settings: ChatSettings,
  { agent, input }: RunRequest,
): Promise<number> {
  const reserve = Math.min(
    model.max_output_tokens ?? DEFAULT_OUTPUT_RESERVE,
    Math.floor(model.context_window / 4),
  );
  const available = model.context_window - reserve;
  const messages: ChatMessage[] = [
    {
      role: 'system',
      content: agent.instruction + (settings.tools ? JSON.stringify(settings.tools) : ''),
    },
    { role: 'user', content: input },
  ];
  const bound = byteBound(messages);
  const needed = bound <= available ? bound : await countMessages(counter, messages);
  if (needed > available) {
    const message = `The input and the agent's instruction take ${needed} tokens; the model ${model.id} has room for ${available}.`;
    throw new TurnlogError('invalid_request', message, {
      details: { input: { message, path: '/input' } },
    });
  }
  return available - needed;
}

/**
 * The newest of `turns` (oldest first, completed ones) that fit the budget together, oldest first.
 */
export async function newestThatFit(
  budget: TokenBudget,
  tokens: number,
  sessionId: string,
  turns: readonly Turn[],
): Promise<Turn[]> {
  if (turns.reduce((sum, turn) => sum + byteBound(turnMessages(turn)), 0) <= tokens)
    return [...turns];
  let left = tokens;
  for (let index = turns.length - 1; index >= 0; index -= 1) {
    left -= await tokensOf(budget, sessionId, turns[index]!);
    if (left < 0) return turns.slice(index + 1);
  }
  return [...turns];
}

async function tokensOf(
  { counter, turnTokens }: TokenBudget,
  sessionId: string,
  turn: Turn,
): Promise<number> {
  const key = `${sessionId}/${turn.turn}`;
  const known = turnTokens.get(key);
  if (known !== undefined) return known;
  const counted = await countMessages(counter, turnMessages(turn));
  turnTokens.set(key, counted);
  return counted;
}
