import { randomUUID } from 'node:crypto';
import { textOf, type CompletionRequest } from './request.ts';
import { LIMITS } from '../../shared/limits.ts';
import { findExpression } from './arithmetic.ts';
import { jsonForSchema } from './jsonForSchema.ts';

/** The output of the offline model: an answer, or one function call. */
type Thought = { content: string } | { call: FunctionCall };

/** `id` is the number of the call in the conversation, so that a replay gets the same one. */
interface FunctionCall {
  id: string;
  name: string;
  arguments: string;
}

const TIME_OR_DATE =
  /\b(what|which|tell|give|know|current|today|now)\b.*\b(time|date|day|hour|year|clock)\b|\b(time|date) (is it|now)\b|\bo'?clock\b/is;
const TIME_ZONE =
  /\b(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)\/[A-Za-z_]+(?:\/[A-Za-z_]+)?\b/;
const { quotedChars, searchedChars } = LIMITS.offlineModel;

const quoted = (text: string): string =>
  `"${text.length > quotedChars ? `${text.slice(0, quotedChars).toWellFormed()}…` : text}"`;

function jsonObjectIn(text: string): string {
  const candidate = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
  try {
    JSON.parse(candidate);
    return candidate;
  } catch {
    return '{}';
  }
}

/** Whether the text contains the name as a word. */
const names = (text: string, name: string): boolean =>
  text
    .toLowerCase()
    .split(/[^\w-]+/)
    .includes(name.toLowerCase());

/**
 * The arguments for calling a function that the input clearly asks for; undefined if it does not.
 */
function argumentsFor(name: string, input: string): string | undefined {
  if (name === 'calculator') {
    const expression = findExpression(input);
    return expression && JSON.stringify({ expression });
  }
  if (name === 'clock') {
    // The pattern's time grows with the square of the text's length.
    const searched = input.slice(0, searchedChars);
    const zone = TIME_ZONE.exec(searched)?.[0];
    return TIME_OR_DATE.test(searched)
      ? JSON.stringify(zone === undefined ? {} : { time_zone: zone })
      : undefined;
  }
  return names(input, name) ? jsonObjectIn(input) : undefined;
}

function nextCallId(messages: CompletionRequest['messages']): string {
  const calls = messages.reduce((sum, { tool_calls = [] }) => sum + tool_calls.length, 0);
  return `call_${calls + 1}`;
}

function functionCalled(messages: CompletionRequest['messages'], id: string | undefined): string {
  const calls = messages.flatMap((message) => message.tool_calls ?? []);
  return calls.findLast((call) => call.id === id)?.function.name ?? 'tool';
}

function functionNames({ tools = [] }: CompletionRequest): string[] {
  return tools.flatMap((tool) => (tool.function ? [tool.function.name] : []));
}

/**
 * Always answers the same request identically: with the last input, the number of user turns in the
 * request, and the results of the functions called for that input. Calls the first offered function
 * that the input asks for, once. If the request asks for JSON, the answer is JSON.
 */
function think(request: CompletionRequest): Thought {
  const { messages } = request;
  const lastInput = messages.findLastIndex((message) => message.role === 'user');
  const input = lastInput < 0 ? '' : textOf(messages[lastInput]!);
  const results = messages.slice(lastInput + 1).filter((message) => message.role === 'tool');
  if (results.length === 0) {
    for (const name of functionNames(request)) {
      const args = argumentsFor(name, input);
      if (args !== undefined) return { call: { id: nextCallId(messages), name, arguments: args } };
    }
  }
  const turns = messages.filter((message) => message.role === 'user').length;
  const toolResults = results
    .map(
      (result) => ` The ${functionCalled(messages, result.tool_call_id)} says ${textOf(result)}.`,
    )
    .join('');
  const content = `This is the offline model.${toolResults} You said: ${quoted(input)}. I was shown ${turns} ${turns === 1 ? 'turn' : 'turns'} of this conversation.`;
  const { type = 'text', json_schema } = request.response_format ?? {};
  return { content: type === 'text' ? content : jsonForSchema(content, json_schema?.schema ?? {}) };
}

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

/** The completion of a request. Its ids reveal nothing about the texts, which may be erased. */
export function complete(request: CompletionRequest): Completion {
  const thought = think(request);
  const prompt = request.messages.reduce((sum, message) => sum + words(textOf(message)), 0);
  const completion =
    'call' in thought
      ? words(`${thought.call.name} ${thought.call.arguments}`)
      : words(thought.content);
  return {
    id: `chatcmpl-offline-${randomUUID()}`,
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

const toolCall = ({ id, ...called }: FunctionCall) => ({ id, type: 'function', function: called });

/**
 * The body in the format of the chat completions API. `created` is 0, so that equal requests get
 * equal bytes, except for the id.
 */
export function completionBody({ id, model, thought, finish_reason, usage }: Completion): string {
  const message =
    'call' in thought
      ? { content: null, tool_calls: [toolCall(thought.call)] }
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

/**
 * The completion as server-sent events: one word per chunk, the finish reason, the usage on
 * request, `[DONE]`.
 */
export function* completionEvents(
  { id, model, thought, finish_reason, usage }: Completion,
  includeUsage: boolean,
): Generator<string> {
  const chunk = (choices: unknown[], more: object = {}): string =>
    `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 0, model, choices, ...(includeUsage && { usage: null }), ...more })}\n\n`;
  const delta = (content: object, reason: string | null = null): string =>
    chunk([{ index: 0, delta: content, logprobs: null, finish_reason: reason }]);
  yield delta({ role: 'assistant', content: 'call' in thought ? null : '' });
  if ('call' in thought) yield delta({ tool_calls: [{ index: 0, ...toolCall(thought.call) }] });
  else for (const [word] of thought.content.matchAll(/\S+\s*|\s+/g)) yield delta({ content: word });
  yield delta({}, finish_reason);
  if (includeUsage) yield chunk([], { usage });
  yield 'data: [DONE]\n\n';
}
