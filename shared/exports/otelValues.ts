/** The parts of OTLP in JSON that spans are made of. */
import { createHash } from 'node:crypto';
import type { ToolCalledData } from '../sessions/events.ts';
import { parseToolArguments, type ModelStep } from './record.ts';

/** A value as attributes take it; an object is written as JSON. */
type Value = string | number | readonly string[] | object | undefined;

/** Numbers that the conventions have as doubles, whole ones too: a name has one type. */
const DOUBLES: ReadonlySet<string> = new Set(['gen_ai.request.temperature']);

function anyValue(key: string, value: Exclude<Value, undefined>): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'number')
    return DOUBLES.has(key) ? { doubleValue: value } : { intValue: String(value) };
  if (Array.isArray(value) && value.every((one) => typeof one === 'string'))
    return { arrayValue: { values: value.map((one: string) => ({ stringValue: one })) } };
  return { stringValue: JSON.stringify(value) };
}

/** Attributes by their names, without those that are undefined. */
export const toOtelAttributes = (values: Readonly<Record<string, Value>>): object[] =>
  Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: anyValue(key, value) }],
  );

const hex = (name: string, bytes: number): string =>
  createHash('sha256')
    .update(name)
    .digest('hex')
    .slice(0, 2 * bytes);

/** The trace of a name: always the same. */
export const traceIdOf = (name: string): string => hex(name, 16);
/** The span of a name: always the same. */
export const spanIdOf = (name: string): string => hex(name, 8);

/** Milliseconds since the epoch as OTLP has times. */
export const toNanoseconds = (ms: number): string => `${ms}000000`;

/** A message of the GenAI conventions. */
export interface GenAiMessage {
  role: 'user' | 'assistant' | 'tool';
  parts: object[];
  finish_reason?: string;
}

const textPart = (content: string): object => ({ type: 'text', content });

/** A message that is a text. */
export const textMessage = (role: GenAiMessage['role'], text: string): GenAiMessage => ({
  role,
  parts: [textPart(text)],
});

const callPart = (data: ToolCalledData): object => ({
  type: 'tool_call',
  id: data.call_id,
  name: data.tool,
  arguments: parseToolArguments(data) ?? data.arguments,
});

/** What the tools of a step have answered. */
export const toolMessages = ({ tool_calls }: ModelStep): GenAiMessage[] =>
  tool_calls.map(({ data: { call_id, result } }) => ({
    role: 'tool',
    parts: [{ type: 'tool_call_response', id: call_id, response: result }],
  }));

/** What the model has answered in a step. */
export const answerMessage = ({ call, text, tool_calls }: ModelStep): GenAiMessage => ({
  role: 'assistant',
  parts: [
    ...(text === null ? [] : [textPart(text)]),
    ...tool_calls.map(({ data }) => callPart(data)),
  ],
  finish_reason: finishReason(call?.finish_reason || (tool_calls.length > 0 ? 'tool_calls' : '')),
});

/** How the conventions name the end of an answer in its message, which has to name one. */
export const finishReason = (reason: string): string =>
  reason === 'tool_calls' ? 'tool_call' : reason || 'stop';
