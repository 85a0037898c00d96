import type { Static } from 'typebox';
import { Type } from '../../domain/jsonSchema.ts';
import type { ChatMessage, ChatRequest, ToolCallRequest } from './chat.ts';

/** Parts of a request that a server may not accept. */
const OMITTED_PARTS = ['response_format', 'reasoning_content', 'tool_call_fields'] as const;
export type OmittedPart = (typeof OMITTED_PARTS)[number];

/**
 * How a request deviates from the standard form, for a server that does not accept that form. It is
 * recorded with the call, so that the request can be rebuilt.
 */
export const RequestForm = Type.Object(
  {
    max_tokens_field: Type.Optional(
      Type.Literal('max_tokens', { description: 'In place of `max_completion_tokens`' }),
    ),
    system_role: Type.Optional(
      Type.Enum(['developer', 'user'], {
        description:
          'The role of the first message; `user`: its text precedes that of the first user message',
      }),
    ),
    without: Type.Optional(
      Type.Array(Type.Enum(OMITTED_PARTS), {
        description:
          'Parts that were not sent; `tool_call_fields` are those beside `id`, `type` and `function`',
      }),
    ),
    corrected_calls: Type.Optional(
      Type.Literal(true, {
        description:
          'Tool calls with an invalid name or arguments were sent with a valid name and `{}`',
      }),
    ),
  },
  { title: 'RequestForm', description: 'How the request deviates from the standard form' },
);
export type RequestForm = Static<typeof RequestForm>;

/** A request, and its form where it is not the standard one. */
export interface FormedRequest {
  request: ChatRequest;
  form?: RequestForm;
}

/** Replaces the role of the system message, or merges the message into the first user message. */
function withSystemRole(
  role: NonNullable<RequestForm['system_role']>,
  [system, ...others]: readonly ChatMessage[],
): ChatMessage[] {
  const content = system?.content ?? '';
  if (role === 'developer') return [{ content, role }, ...others];
  const [first, ...later] = others;
  return first?.role === 'user'
    ? [{ ...first, content: `${content}\n\n${first.content}` }, ...later]
    : [{ content, role }, ...others];
}

function withoutPart(part: OmittedPart, request: ChatRequest): ChatRequest {
  if (part === 'response_format') {
    const { response_format: _, ...rest } = request;
    return rest;
  }
  const messages = request.messages.map((message): ChatMessage => {
    if (message.role !== 'assistant') return message;
    const { reasoning_content, tool_calls, ...rest } = message;
    if (part === 'reasoning_content') return { ...rest, ...(tool_calls && { tool_calls }) };
    return {
      ...rest,
      ...(reasoning_content !== undefined && { reasoning_content }),
      ...(tool_calls && { tool_calls: tool_calls.map(standardCall) }),
    };
  });
  return { ...request, messages };
}

const standardCall = ({ extra: _extra, ...call }: ToolCallRequest): ToolCallRequest => call;

/** True for the text of a JSON object. */
export function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Names of functions that every server accepts. */
const FUNCTION_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const validName = (name: string): string => name.replaceAll(/[^a-zA-Z0-9_-]/gu, '_').slice(0, 64);

/** Whether the arguments of a call are an object: the calls of a turn are sent in each round. */
const checkedCalls = new WeakMap<ToolCallRequest, boolean>();

/** True if the arguments of a call are an object; parsed once for the same call. */
export function hasObjectArguments(call: ToolCallRequest): boolean {
  const checked = checkedCalls.get(call);
  if (checked !== undefined) return checked;
  const isObject = isJsonObject(call.function.arguments);
  checkedCalls.set(call, isObject);
  return isObject;
}

const isValidCall = (call: ToolCallRequest): boolean =>
  FUNCTION_NAME.test(call.function.name) && hasObjectArguments(call);

/** The call with a valid name and arguments. */
export const correctedCall = (call: ToolCallRequest): ToolCallRequest => {
  const { name, arguments: args } = call.function;
  const corrected = {
    ...call.function,
    arguments: hasObjectArguments(call) ? args : '{}',
    name: validName(name),
  };
  return { ...call, function: corrected };
};

const hasInvalidCall = (message: ChatMessage): boolean =>
  message.role === 'assistant' && message.tool_calls?.every(isValidCall) === false;

/** The messages with a valid name and a JSON object as arguments of each tool call. */
const correctMessages = (messages: readonly ChatMessage[]): ChatMessage[] =>
  messages.map((message) =>
    message.role === 'assistant' && message.tool_calls
      ? { ...message, tool_calls: message.tool_calls.map(correctedCall) }
      : message,
  );

/** The tool calls of a request whose arguments were not parsed yet. */
export const uncheckedCalls = ({ messages }: ChatRequest): ToolCallRequest[] =>
  messages.flatMap((message) =>
    message.role === 'assistant'
      ? (message.tool_calls?.filter((call) => !checkedCalls.has(call)) ?? [])
      : [],
  );

/**
 * Corrects the tool calls of a request where one of them is invalid. The results of the calls
 * explain the mistakes.
 */
export function correctCalls(request: ChatRequest): FormedRequest {
  if (!request.messages.some(hasInvalidCall)) return { request };
  return {
    request: { ...request, messages: correctMessages(request.messages) },
    form: { corrected_calls: true },
  };
}

/** The request in this form. */
export function applyRequestForm(form: RequestForm, request: ChatRequest): ChatRequest {
  let formed = form.corrected_calls ? correctCalls(request).request : request;
  const { max_completion_tokens, ...rest } = formed;
  if (form.max_tokens_field && max_completion_tokens !== undefined)
    formed = { max_tokens: max_completion_tokens, ...rest };
  if (form.system_role)
    formed = { ...formed, messages: withSystemRole(form.system_role, formed.messages) };
  return (form.without ?? []).reduce((sent, part) => withoutPart(part, sent), formed);
}
