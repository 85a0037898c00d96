import type { LRUCache } from 'lru-cache';
import type { ChatMessage } from '../../sessions/turns/chat.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { TokenCounter } from '../../ports/tokenCounter.ts';

/**
 * What a chat format adds around each message, rounded up (OpenAI's cookbook counts 3 and a name).
 */
export const MESSAGE_OVERHEAD = 4;
export interface TokenBudget {
  counter: TokenCounter;
  /** Tokens of turns that have ended, by session and turn: they never change. */
  turnTokens: LRUCache<string, number>;
}

/** What a tokenizer sees of messages. */
export const messageTexts = (messages: readonly ChatMessage[]): string[] =>
  messages.flatMap((message) => [
    message.content ?? '',
    ...('tool_calls' in message
      ? (message.tool_calls ?? []).map((call) => call.function.name + call.function.arguments)
      : []),
  ]);

/** UTF-8 bytes of messages in a prompt. */
export const promptMessageBytes = (messages: readonly ChatMessage[]): number =>
  messageTexts(messages).reduce((sum, text) => sum + Buffer.byteLength(text), 0);

/** No tokenizer in use makes more tokens than bytes, so this often spares the real count. */
export const maxTokens = (messages: readonly ChatMessage[]): number =>
  promptMessageBytes(messages) + messages.length * MESSAGE_OVERHEAD;

/** Tokens of messages in a prompt, as the tokenizer counts them, or more than `atMost`. */
export const countMessages = async (
  counter: TokenCounter,
  messages: readonly ChatMessage[],
  accountId: string,
  atMost?: number,
): Promise<number> =>
  messages.length * MESSAGE_OVERHEAD +
  (await counter.count(messageTexts(messages), accountId, atMost));

/** Of English, about. */
const BYTES_OF_A_TOKEN = 4;

/**
 * Tokens of what a model was sent and has answered already: where they can't be counted in time,
 * about as many as they may be, since the answer is not to be lost for that.
 */
export const countOrEstimate = (
  counter: TokenCounter,
  said: readonly string[],
  accountId: string,
): Promise<number> =>
  counter.count(said, accountId).catch((error: unknown) => {
    if (!isTurnlogError(error)) throw error;
    const bytes = said.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    return Math.ceil(bytes / BYTES_OF_A_TOKEN);
  });
