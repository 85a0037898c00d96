import type { RecordedResponseFormat } from '../../agents/parameters.ts';
import { DeferredJson } from '../../lib/slices.ts';
import type {
  ChatMessage,
  ChatRequest,
  ChatResponseFormat,
  ToolCallExtra,
  ToolCallRequest,
} from './chat.ts';

/** A recorded response format as clients and model providers have it. */
export function parseFormat({ type, json_schema }: RecordedResponseFormat): ChatResponseFormat {
  if (type !== 'json_schema') return { type };
  const { name, schema, strict } = json_schema!;
  return {
    json_schema: {
      name,
      schema: JSON.parse(schema) as Record<string, unknown>,
      ...(strict !== undefined && { strict }),
    },
    type,
  };
}

/**
 * The JSON of `parseFormat`, without parsing the schema. A schema is sent verbatim, because the order
 * of its members determines the order in the answer.
 */
export function formatJson({ type, json_schema }: RecordedResponseFormat): string {
  if (type !== 'json_schema') return JSON.stringify({ type });
  const { name, schema, strict } = json_schema!;
  const end = strict === undefined ? '' : `,"strict":${strict}`;
  return `{"json_schema":{"name":${JSON.stringify(name)},"schema":${schema}${end}},"type":"${type}"}`;
}

/** A tool call with the provider's own fields, which precede the standard ones. */
function bodyCall({ extra, ...call }: ToolCallRequest): object {
  if (extra === undefined) return call;
  const fields = JSON.parse(extra) as ToolCallExtra;
  return { ...fields, ...call, function: { ...fields.function, ...call.function } };
}

/** The JSON of `bodyCall`. Only fields of which some are of the function are parsed for it. */
function callJson(call: ToolCallRequest): string {
  const { extra, ...standard } = call;
  if (extra === undefined || extra.includes('"function":')) return JSON.stringify(bodyCall(call));
  return `${extra.slice(0, -1)},${JSON.stringify(standard).slice(1)}`;
}

function bodyMessage(message: ChatMessage): ChatMessage | DeferredJson {
  if (message.role !== 'assistant') return message;
  const { tool_calls, ...texts } = message;
  if (!tool_calls?.some(({ extra }) => extra !== undefined)) return message;
  return new DeferredJson(
    () => ({ ...texts, tool_calls: tool_calls.map(bodyCall) }),
    () =>
      `${JSON.stringify(texts).slice(0, -1)},"tool_calls":[${tool_calls.map(callJson).join()}]}`,
  );
}

/**
 * The body of a request, for `writeJson`, `digestOfJson` and `jsonSlices`. Its members are in the order of
 * the request.
 */
export const requestBody = (request: ChatRequest): object => {
  const { messages, response_format: format } = request;
  return {
    ...request,
    messages: messages.map(bodyMessage),
    ...(format && {
      response_format: new DeferredJson(
        () => parseFormat(format),
        () => formatJson(format),
      ),
    }),
  };
};
