import { LIMITS } from '../../shared/limits.ts';
import { findExpression } from './arithmetic.ts';
import { jsonForSchema } from './jsonForSchema.ts';
import { textOf, type CompletionRequest } from './request.ts';

/** What the offline model says: an answer, or one call of a function. */
export type Thought = { content: string } | { call: { name: string; arguments: string } };

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

/** Whether a word of the text is the name. */
const names = (text: string, name: string): boolean =>
  text
    .toLowerCase()
    .split(/[^\w-]+/)
    .includes(name.toLowerCase());

/**
 * The arguments to call a function with when the input plainly asks for it; undefined when it
 * doesn't.
 */
function argumentsFor(name: string, input: string): string | undefined {
  if (name === 'calculator') {
    const expression = findExpression(input);
    return expression && JSON.stringify({ expression });
  }
  if (name === 'clock') {
    // The pattern takes the square of a text's length.
    const searched = input.slice(0, searchedChars);
    const zone = TIME_ZONE.exec(searched)?.[0];
    return TIME_OR_DATE.test(searched)
      ? JSON.stringify(zone === undefined ? {} : { time_zone: zone })
      : undefined;
  }
  return names(input, name) ? jsonObjectIn(input) : undefined;
}

function functionCalled(messages: CompletionRequest['messages'], id: string | undefined): string {
  const calls = messages.flatMap((message) => message.tool_calls ?? []);
  return calls.findLast((call) => call.id === id)?.function.name ?? 'tool';
}

function functionNames({ tools = [] }: CompletionRequest): string[] {
  return tools.flatMap((tool) => (tool.function ? [tool.function.name] : []));
}

/**
 * Answers the same to the same request, for ever: with the last input, how many turns of the user
 * it was shown, and the results of the functions that it called for that input. It calls the first
 * offered function that the input asks for, once. Where JSON is asked for, it says it in JSON.
 */
export function think(request: CompletionRequest): Thought {
  const { messages } = request;
  const lastInput = messages.findLastIndex((message) => message.role === 'user');
  const input = lastInput < 0 ? '' : textOf(messages[lastInput]!);
  const results = messages.slice(lastInput + 1).filter((message) => message.role === 'tool');
  if (results.length === 0) {
    for (const name of functionNames(request)) {
      const args = argumentsFor(name, input);
      if (args !== undefined) return { call: { name, arguments: args } };
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
