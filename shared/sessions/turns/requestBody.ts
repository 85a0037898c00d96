import type { RecordedResponseFormat } from '../../agents/parameters.ts';
import { DeferredJson } from '../../lib/slices.ts';
import type { ChatRequest, ChatResponseFormat } from './chat.ts';

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

/**
 * The body of a request, for `writeJson`, `digestOfJson` and `jsonSlices`. Its members are in the order of
 * the request.
 */
export const requestBody = (request: ChatRequest): object => {
  const { response_format: format } = request;
  return {
    ...request,
    ...(format && {
      response_format: new DeferredJson(
        () => parseFormat(format),
        () => formatJson(format),
      ),
    }),
  };
};
