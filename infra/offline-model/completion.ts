import { randomUUID } from 'node:crypto';
import { createPause, SLICE_BYTES } from '../../shared/lib/concurrency/yieldToEventLoop.ts';
import { textOf, type CompletionRequest } from './request.ts';
import { composeOutput, type CalledFunction, type ModelOutput } from './thought.ts';

export const OFFLINE_MODEL = 'offline-echo';

/** Whether a UTF-16 code unit matches `\\s`. */
function isSpace(code: number): boolean {
  if (code < 0xa0) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  if (code < 0x1680) return code === 0xa0;
  if (code > 0x3000) return code === 0xfeff;
  const isRare = code === 0x202f || code === 0x205f || code === 0x1680 || code === 0x3000;
  return isRare || (code >= 0x2000 && code <= 0x200a) || code === 0x2028 || code === 0x2029;
}

/** The number of words that begin in a part of a text. */
function countWords(text: string, from = 0, upTo = text.length): number {
  let words = 0;
  let isBetween = from === 0 || isSpace(text.charCodeAt(from - 1));
  for (let at = from; at < upTo; at += 1) {
    const wasBetween = isBetween;
    isBetween = isSpace(text.charCodeAt(at));
    if (wasBetween && !isBetween) words += 1;
  }
  return words;
}

/** The words of all messages. Yields to the event loop, because a prompt may have megabytes. */
async function countPrompt({ messages }: CompletionRequest): Promise<number> {
  const pause = createPause(() => OFFLINE_MODEL);
  let words = 0;
  for (const message of messages) {
    const text = textOf(message);
    for (let from = 0; from < text.length; from += SLICE_BYTES) {
      const pausing = pause();
      if (pausing) await pausing;
      words += countWords(text, from, Math.min(from + SLICE_BYTES, text.length));
    }
  }
  return words;
}

interface Completion {
  id: string;
  model: string;
  thought: ModelOutput;
  finish_reason: 'stop' | 'tool_calls';
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

/** The words with the space after them, as they are streamed. */
function* pieces(text = ''): Generator<string> {
  for (const [piece] of text.matchAll(/\S+\s*|\s+/g)) yield piece;
}

/** The number of words that the model writes: those of the reasoning and of the answer. */
export const wordsWritten = ({ thought }: Completion): number =>
  countWords(thought.reasoning ?? '') + ('calls' in thought ? 0 : countWords(thought.content));

/**
 * The completion of a request. Its ids reveal nothing about the texts, which may be erased. Throws
 * AnswerTooLong. The model's tokens are words.
 */
export async function generateCompletion(request: CompletionRequest): Promise<Completion> {
  const thought = composeOutput(request);
  const prompt = await countPrompt(request);
  const output =
    'calls' in thought
      ? thought.calls.map((call) => `${call.name} ${call.arguments}`).join(' ')
      : thought.content;
  const completion = countWords(`${thought.reasoning ?? ''} ${output}`);
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
