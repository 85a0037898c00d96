import { randomUUID } from 'node:crypto';
import { textOf, type CompletionRequest } from './request.ts';
import { think, type CalledFunction, type Thought } from './thought.ts';

export const OFFLINE_MODEL = 'offline-echo';

/** The model's tokens are words. */
const words = (text: string): number => text.split(/\s+/).filter(Boolean).length;

interface Completion {
  id: string;
  model: string;
  thought: Thought;
  finish_reason: 'stop' | 'tool_calls';
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

/** The words with the space after them, as they are streamed. */
const pieces = (text = ''): string[] => text.match(/\S+\s*|\s+/g) ?? [];

/** The number of words that the model writes: those of the reasoning and of the answer. */
export const wordsWritten = ({ thought }: Completion): number =>
  pieces(thought.reasoning).length + ('calls' in thought ? 0 : pieces(thought.content).length);

/** The completion of a request. Its ids reveal nothing about the texts, which may be erased. */
export function complete(request: CompletionRequest): Completion {
  const thought = think(request);
  const prompt = request.messages.reduce((sum, message) => sum + words(textOf(message)), 0);
  const output =
    'calls' in thought
      ? thought.calls.map((call) => `${call.name} ${call.arguments}`).join(' ')
      : thought.content;
  const completion = words(`${thought.reasoning ?? ''} ${output}`);
  return {
    id: `chatcmpl-offline-${randomUUID()}`,
    model: OFFLINE_MODEL,
    thought,
    finish_reason: 'calls' in thought ? 'tool_calls' : 'stop',
    usage: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
    },
  };
}

const toolCall = ({ id, ...called }: CalledFunction) => ({
  id,
  type: 'function',
  function: called,
});

/**
 * The body in the format of the chat completions API. `created` is 0, so that equal requests get
 * equal bytes, except for the id. Reasoning is in `reasoning_content`, as DeepSeek's API has it.
 */
export function completionBody({ id, model, thought, finish_reason, usage }: Completion): string {
  const message =
    'calls' in thought
      ? { content: null, tool_calls: thought.calls.map(toolCall) }
      : { content: thought.content };
  const reasoning = thought.reasoning === undefined ? {} : { reasoning_content: thought.reasoning };
  return JSON.stringify({
    id,
    object: 'chat.completion',
    created: 0,
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', refusal: null, ...reasoning, ...message },
        logprobs: null,
        finish_reason,
      },
    ],
    usage,
  });
}

interface StreamOptions {
  includeUsage: boolean;
  /** Waits before each word. */
  beforeWord: () => Promise<void>;
}

/**
 * The completion as server-sent events: one word per chunk, reasoning first; tool calls; the finish
 * reason; the usage on request; `[DONE]`.
 */
export async function* completionEvents(
  { id, model, thought, finish_reason, usage }: Completion,
  { includeUsage, beforeWord }: StreamOptions,
): AsyncGenerator<string> {
  const chunk = (choices: unknown[], more: object = {}): string =>
    `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 0, model, choices, ...(includeUsage && { usage: null }), ...more })}\n\n`;
  const delta = (content: object, reason: string | null = null): string =>
    chunk([{ index: 0, delta: content, logprobs: null, finish_reason: reason }]);
  yield delta({ role: 'assistant', content: 'calls' in thought ? null : '' });
  for (const word of pieces(thought.reasoning)) {
    await beforeWord();
    yield delta({ reasoning_content: word });
  }
  if ('calls' in thought) {
    for (const [index, call] of thought.calls.entries())
      yield delta({ tool_calls: [{ index, ...toolCall(call) }] });
  } else {
    for (const word of pieces(thought.content)) {
      await beforeWord();
      yield delta({ content: word });
    }
  }
  yield delta({}, finish_reason);
  if (includeUsage) yield chunk([], { usage });
  yield 'data: [DONE]\n\n';
}
