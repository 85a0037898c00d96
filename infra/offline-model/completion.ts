import { createHash } from 'node:crypto';
import { textOf, type CompletionRequest } from './request.ts';
import { think, type Thought } from './think.ts';

export const OFFLINE_MODEL = 'offline-echo';

/** Its tokens are words. */
const words = (text: string): number => text.split(/\s+/).filter(Boolean).length;

interface Completion {
  id: string;
  model: string;
  thought: Thought;
  finish_reason: 'stop' | 'tool_calls';
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

/** The completion of a request; `body` is its text, from which the id follows. */
export function complete(request: CompletionRequest, body: string): Completion {
  const thought = think(request);
  const prompt = request.messages.reduce((sum, message) => sum + words(textOf(message)), 0);
  const completion =
    'call' in thought
      ? words(`${thought.call.name} ${thought.call.arguments}`)
      : words(thought.content);
  return {
    id: `chatcmpl-offline-${createHash('sha256').update(body).digest('hex').slice(0, 24)}`,
    model: OFFLINE_MODEL,
    thought,
    finish_reason: 'call' in thought ? 'tool_calls' : 'stop',
    usage: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
    },
  };
}

const toolCall = (id: string, call: { name: string; arguments: string }) => ({
  id: id.replace('chatcmpl', 'call'),
  type: 'function',
  function: call,
});

/** As the chat completions API writes it. `created` is 0: the same request, the same bytes. */
export function completionBody({ id, model, thought, finish_reason, usage }: Completion): string {
  const message =
    'call' in thought
      ? { content: null, tool_calls: [toolCall(id, thought.call)] }
      : { content: thought.content };
  return JSON.stringify({
    id,
    object: 'chat.completion',
    created: 0,
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', refusal: null, ...message },
        logprobs: null,
        finish_reason,
      },
    ],
    usage,
  });
}

/** As server-sent events: a word a chunk, the reason, the usage if wanted, `[DONE]`. */
export function* completionEvents(
  { id, model, thought, finish_reason, usage }: Completion,
  includeUsage: boolean,
): Generator<string> {
  const chunk = (choices: unknown[], more: object = {}): string =>
    `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 0, model, choices, ...(includeUsage && { usage: null }), ...more })}\n\n`;
  const delta = (content: object, reason: string | null = null): string =>
    chunk([{ index: 0, delta: content, logprobs: null, finish_reason: reason }]);
  yield delta({ role: 'assistant', content: 'call' in thought ? null : '' });
  if ('call' in thought) yield delta({ tool_calls: [{ index: 0, ...toolCall(id, thought.call) }] });
  else for (const [word] of thought.content.matchAll(/\S+\s*|\s+/g)) yield delta({ content: word });
  yield delta({}, finish_reason);
  if (includeUsage) yield chunk([], { usage });
  yield 'data: [DONE]\n\n';
}
