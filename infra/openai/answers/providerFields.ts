import { LIMITS } from '../../../shared/limits.ts';
import type { ToolCallExtra } from '../../../shared/sessions/turns/chat.ts';

/** A tool call, or a part of one in a stream, as the provider sent it. */
interface SentCall {
  function?: object | null | undefined;
}

const STANDARD = new Set(['id', 'type', 'index', 'function']);
const STANDARD_IN_FUNCTION = new Set(['name', 'arguments']);

const hasOnly = (names: ReadonlySet<string>, value: object): boolean =>
  Object.keys(value).every((name) => names.has(name));
const fieldsBeside = (names: ReadonlySet<string>, value: object): [string, unknown][] =>
  Object.entries(value).filter(([name]) => !names.has(name));

/** The provider's own fields of a tool call, such as Gemini's `extra_content`; undefined for most calls. */
function extraFieldsOf(call: SentCall): ToolCallExtra | undefined {
  const called = call.function ?? {};
  if (hasOnly(STANDARD, call) && hasOnly(STANDARD_IN_FUNCTION, called)) return undefined;
  const ofFunction = fieldsBeside(STANDARD_IN_FUNCTION, called);
  return {
    ...Object.fromEntries(fieldsBeside(STANDARD, call)),
    ...(ofFunction.length > 0 && { function: Object.fromEntries(ofFunction) }),
  };
}

/** NUL and lone surrogates, as JSON.stringify writes them. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/;

/** True if a parsed JSON value has members on more than so many levels. */
export const isNestedDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((member) => isNestedDeeper(member, levels - 1)));

/**
 * The provider's own fields of a tool call as JSON: a ToolCallExtra. Undefined for most calls, and for
 * fields that can't be recorded and sent back: texts that can't be stored, and those beyond the limits
 * of depth and length.
 */
export function recordableFields(call: SentCall): string | undefined {
  const { callFieldsChars, callFieldsDepth } = LIMITS.model;
  const extra = extraFieldsOf(call);
  if (!extra || isNestedDeeper(extra, callFieldsDepth)) return undefined;
  const text = JSON.stringify(extra);
  return text.length <= callFieldsChars && !UNSTORABLE.test(text) ? text : undefined;
}

/** The reasoning of providers: DeepSeek, vLLM and llama.cpp use the first member, OpenRouter the second. */
interface Reasoned {
  reasoning_content?: unknown;
  reasoning?: unknown;
}

/** The text of the reasoning in a message or delta, empty without any. */
export function reasoningOf({ reasoning_content, reasoning }: Reasoned): string {
  const text = reasoning_content || reasoning;
  return typeof text === 'string' ? text : '';
}
