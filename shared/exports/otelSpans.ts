import type { ChatSettings } from '../sessions/turns/chat.ts';
import type { ModelCall } from '../sessions/turns/promptParts.ts';
import {
  toOtelAttributes,
  toNanoseconds,
  spanIdOf,
  traceIdOf,
  type GenAiMessage,
} from './otelValues.ts';
import type { ExportedSession } from './record.ts';
import { jsonSlices } from '../lib/slices.ts';

/** Span kinds. */
export const [INTERNAL, CLIENT] = [1, 3];
const ERROR = 2;

/** A span of a trace. */
export interface Span {
  /** Identifies the span within its trace. */
  id: string;
  name: string;
  kind: number;
  startMs: number;
  endMs: number;
  attributes: Parameters<typeof toOtelAttributes>[0];
  failure?: { code: string; message?: string } | undefined;
}

/** Formats a span as OTLP/JSON, in slices. `trace` names the trace; `parent` is undefined for a root span. */
export function spanText(trace: string, parent: string | undefined, span: Span): Generator<string> {
  const { id, name, kind, startMs, endMs, failure } = span;
  const attributes = { ...span.attributes, 'error.type': failure?.code };
  return jsonSlices({
    traceId: traceIdOf(trace),
    spanId: spanIdOf(`${trace}/${id}`),
    ...(parent !== undefined && { parentSpanId: spanIdOf(`${trace}/${parent}`) }),
    name,
    kind,
    startTimeUnixNano: toNanoseconds(startMs),
    endTimeUnixNano: toNanoseconds(endMs),
    attributes: toOtelAttributes(attributes),
    ...(failure && { status: { code: ERROR, message: failure.message } }),
  });
}

/** The requested output type, as named by the conventions. */
const outputType = ({ response_format: format }: ChatSettings): string | undefined =>
  format && (format.type === 'text' ? 'text' : 'json');

/** The attributes of a request; those of the fallback request if the fallback answered. */
export const requestAttributes = (settings: ChatSettings, call: ModelCall | undefined) => ({
  'gen_ai.provider.name': 'openai',
  'gen_ai.request.model': call?.fallback?.upstream_model ?? settings.model,
  'gen_ai.request.temperature': settings.temperature,
  'gen_ai.request.max_tokens': call?.fallback
    ? call.fallback.max_completion_tokens
    : settings.max_completion_tokens,
  'gen_ai.output.type': outputType(settings),
});

/** The attributes of token counts. */
export const usageOf = (tokens: ModelCall['tokens'] | undefined) => ({
  'gen_ai.usage.input_tokens': tokens?.prompt,
  'gen_ai.usage.output_tokens': tokens?.completion,
});

const responseOf = (call: ModelCall | undefined) => ({
  // Values that the provider did not report are recorded as empty strings.
  'gen_ai.response.id': call?.response_id || undefined,
  'gen_ai.response.model': call?.model,
  'gen_ai.response.finish_reasons': call?.finish_reason ? [call.finish_reason] : undefined,
  ...usageOf(call?.tokens),
});

interface Chat {
  session: ExportedSession;
  settings: ChatSettings;
  call: ModelCall | undefined;
  input: readonly GenAiMessage[];
  output: readonly GenAiMessage[];
}

/** The attributes of a model call. */
export const chatAttributes = ({ session, settings, call, input, output }: Chat) => ({
  'gen_ai.operation.name': 'chat',
  ...requestAttributes(settings, call),
  ...responseOf(call),
  'gen_ai.conversation.id': session.session_id,
  'gen_ai.input.messages': input,
  'gen_ai.output.messages': output,
});
