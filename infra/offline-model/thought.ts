import { textOf, type CompletionRequest } from './request.ts';
import { hasMoreValues } from '../../shared/lib/validation/jsonComplexity.ts';
import { LIMITS } from '../../shared/limits.ts';
import { findExpression } from './arithmetic.ts';
import { parseDirectives, type Directives } from './directives.ts';
import { jsonForSchema } from './jsonForSchema.ts';

/** The output of the offline model: an answer, or function calls; with the reasoning before it. */
export type ModelOutput = { reasoning?: string } & (
  { content: string } | { calls: CalledFunction[] }
);

/** `id` is the number of the call in the conversation, so that a replay gets the same one. */
export interface CalledFunction {
  id: string;
  name: string;
  arguments: string;
}

const TIME_OR_DATE =
  /\b(what|which|tell|give|know|current|today|now)\b.*\b(time|date|day|hour|year|clock)\b|\b(time|date) (is it|now)\b|\bo'?clock\b/is;
const TIME_ZONE =
  /\b(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)\/[A-Za-z_]+(?:\/[A-Za-z_]+)?\b/;
const { answerChars, quotedChars, searchedChars } = LIMITS.offlineModel;

const quoted = (text: string): string =>
  `"${text.length > quotedChars ? `${text.slice(0, quotedChars).toWellFormed()}…` : text}"`;

function jsonObjectIn(text: string): string {
  const candidate = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
  if (hasMoreValues(candidate, LIMITS.model.answerValues)) return '{}';
  try {
    JSON.parse(candidate);
    return candidate;
  } catch {
    return '{}';
  }
}

/** The words that begin in the searched part of an input, in lower case. */
function searchedWords(input: string): Set<string> {
  const words = new Set<string>();
  const text = input.slice(0, 2 * searchedChars).toLowerCase();
  for (const { 0: word, index } of text.matchAll(/[\w-]+/g)) {
    if (index >= searchedChars) break;
    words.add(word);
  }
  return words;
}

/**
 * The arguments for calling a function that the input clearly requests; undefined if it does not.
 * `words` are those of the input.
 */
function argumentsFor(name: string, input: string, words: ReadonlySet<string>): string | undefined {
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
  return words.has(name.toLowerCase()) ? jsonObjectIn(input) : undefined;
}

/** Numbers calls through the conversation. */
function withIds(
  calls: readonly Omit<CalledFunction, 'id'>[],
  messages: CompletionRequest['messages'],
): CalledFunction[] {
  const earlier = messages.reduce((sum, { tool_calls = [] }) => sum + tool_calls.length, 0);
  return calls.map((call, index) => ({ id: `call_${earlier + index + 1}`, ...call }));
}

/** The names of the called functions, by the ids of the calls. */
function calledFunctions(messages: CompletionRequest['messages']): Map<string | undefined, string> {
  const calls = messages.flatMap((message) => message.tool_calls ?? []);
  return new Map(calls.map((call) => [call.id, call.function.name]));
}

function functionNames({ tools = [] }: CompletionRequest): string[] {
  return tools.flatMap((tool) => (tool.function ? [tool.function.name] : []));
}

/** The text of the last user message; empty if there is none. */
export function lastInputOf({ messages }: CompletionRequest): string {
  const last = messages.findLast((message) => message.role === 'user');
  return last ? textOf(last) : '';
}

/** Explains why a requested function is not called; empty if all are offered. */
function missingFunctions(requested: readonly string[], offered: readonly string[]): string {
  const missing = requested.find((name) => !offered.includes(name));
  if (missing === undefined) return '';
  return offered.length === 0
    ? ' I was given no tools.'
    : ` I can call ${offered.join(', ')}, not ${quoted(missing)}.`;
}

/** The calls that the input requests: those of its directives, or one that its words request. */
function requestedCalls(
  { calls, rest }: Directives,
  offered: readonly string[],
): Omit<CalledFunction, 'id'>[] {
  if (calls.length > 0) return calls.every(({ name }) => offered.includes(name)) ? calls : [];
  const words = searchedWords(rest);
  for (const name of offered) {
    const args = argumentsFor(name, rest, words);
    if (args !== undefined) return [{ name, arguments: args }];
  }
  return [];
}

/**
 * Always answers the same request identically: with the last input, the number of user turns in the
 * request, and the results of the functions called for that input. Calls the functions that the
 * directives of the input name, or the first offered one that its words ask for, once per input. If
 * the request requires JSON, the answer is JSON.
 */
export function composeOutput(request: CompletionRequest): ModelOutput {
  const { messages } = request;
  const lastInput = messages.findLastIndex((message) => message.role === 'user');
  const input = lastInputOf(request);
  const directives = parseDirectives(input);
  const offered = functionNames(request);
  const results = messages.slice(lastInput + 1).filter((message) => message.role === 'tool');
  const calls = results.length > 0 ? [] : requestedCalls(directives, offered);
  const reasoningFor = (reasoning: string) => (directives.reasons ? { reasoning } : {});
  if (calls.length > 0)
    return {
      ...reasoningFor(`I need ${calls.map(({ name }) => name).join(', then ')} for this.`),
      calls: withIds(calls, messages),
    };
  const turns = messages.filter((message) => message.role === 'user').length;
  const called = calledFunctions(messages);
  const toolResults = results
    .map((result) => ` The ${called.get(result.tool_call_id) ?? 'tool'} says ${textOf(result)}.`)
    .join('')
    .slice(0, answerChars)
    .toWellFormed();
  const missing = missingFunctions(
    directives.calls.map(({ name }) => name),
    offered,
  );
  const content = `This is the offline model.${toolResults}${missing} You said: ${quoted(input)}. I was shown ${turns} ${turns === 1 ? 'turn' : 'turns'} of this conversation.`;
  const { type = 'text', json_schema } = request.response_format ?? {};
  return {
    ...reasoningFor(
      results.length > 0
        ? 'The tools have answered. I repeat what they say.'
        : 'I need no tool for this. I repeat what the user says.',
    ),
    content: type === 'text' ? content : jsonForSchema(content, json_schema?.schema ?? {}),
  };
}
