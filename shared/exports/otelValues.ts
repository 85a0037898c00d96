/** The OTLP/JSON values that spans consist of. */
import { createHash } from 'node:crypto';
import type { ToolCalledData } from '../sessions/events.ts';
import { nestedJson } from '../lib/slices.ts';
import { parseToolArguments, type ModelStep } from './record.ts';

/** The value of an attribute. Objects are written as JSON. */
type Value = string | number | readonly string[] | object | undefined;

/** Attributes that the conventions define as doubles, also for whole numbers: each has one type. */
const DOUBLES: ReadonlySet<string> = new Set(['gen_ai.request.temperature']);

function anyValue(key: string, value: Exclude<Value, undefined>): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'number')
    return DOUBLES.has(key) ? { doubleValue: value } : { intValue: String(value) };
  if (Array.isArray(value) && value.every((item) => typeof item === 'string'))
    return { arrayValue: { values: value.map((item: string) => ({ stringValue: item })) } };
  return { stringValue: nestedJson(value) };
}

/** Encodes attributes and omits undefined ones. */
export const toOtelAttributes = (values: Readonly<Record<string, Value>>): object[] =>
  Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: anyValue(key, value) }],
  );

const hex = (name: string, bytes: number): string =>
  createHash('sha256')
    .update(name)
    .digest('hex')
    .slice(0, 2 * bytes);

/** Derives a stable trace id from a name. */
export const traceIdOf = (name: string): string => hex(name, 16);
/** Derives a stable span id from a name. */
export const spanIdOf = (name: string): string => hex(name, 8);

/** Converts milliseconds since the epoch to an OTLP timestamp. */
export const toNanoseconds = (ms: number): string => `${ms}000000`;

/** A message of the GenAI conventions. */
export interface GenAiMessage {
  role: 'user' | 'assistant' | 'tool';
  /** Tool calls are made when they are written, since their arguments are parsed. */
  parts: (object | (() => object))[];
  finish_reason?: string;
}

const textPart = (content: string): object => ({ type: 'text', content });

/** A text message. */
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

/** The results of the tool calls of a step. */
export const toolMessages = ({ tool_calls }: ModelStep): GenAiMessage[] =>
  tool_calls.map(({ data: { call_id, result } }) => ({
    role: 'tool',
    parts: [{ type: 'tool_call_response', id: call_id, response: result }],
  }));

/** The answer of the model in a step. */
export const answerMessage = ({ call, text, tool_calls }: ModelStep): GenAiMessage => ({
  role: 'assistant',
  parts: [
    ...(text === null ? [] : [textPart(text)]),
    ...tool_calls.map(
      ({ data }) =>
        () =>
          callPart(data),
    ),
  ],
  finish_reason: finishReason(call?.finish_reason || (tool_calls.length > 0 ? 'tool_calls' : '')),
});

/** Maps a finish reason to the conventions, which require one in every output message. */
export const finishReason = (reason: string): string =>
  reason === 'tool_calls' ? 'tool_call' : reason || 'stop';
