import type { TSchema } from 'typebox';
import type { ErrorCode } from '../../shared/errors.ts';
import { ERROR_ANSWERS } from './errors.ts';
import type { Route } from './route.ts';
import { CommonQuery } from './schemas/common.ts';

/** Codes that any operation may answer, by what it takes. */
function codesOf(route: Route): ErrorCode[] {
  return [
    'invalid_request',
    ...(route.access === 'open'
      ? []
      : (['unauthorized', 'rate_limited', 'overloaded', 'store_unavailable'] as const)),
    ...(route.method === 'get' ? [] : (['log_changed'] as const)),
    ...(route.access === 'open' || route.access === 'key' ? [] : (['forbidden'] as const)),
    ...(route.body
      ? (['invalid_json', 'payload_too_large', 'unsupported_media_type'] as const)
      : []),
    ...route.errors,
    'internal_error',
  ];
}

const json = (schema: object) => ({ 'application/json': { schema } });

const requestIdHeader = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } };

/** Of what may have been recorded. */
const visibleHeader = ({ method }: Route, status: number) =>
  method !== 'get' && (status < 400 || status >= 500)
    ? { 'X-Turnlog-Visible': { $ref: '#/components/headers/Visible' } }
    : {};

function success(route: Route) {
  const paged = route.query?.properties['after'] !== undefined;
  return {
    description: 'Success',
    headers: {
      ...requestIdHeader,
      ...visibleHeader(route, 200),
      ...(paged
        ? {
            Link: {
              description: 'With `rel="next"`: where the next page is',
              schema: { type: 'string' },
            },
          }
        : {}),
    },
    content: json({
      type: 'object',
      required: ['success', 'data', 'status'],
      properties: { success: { const: true }, data: route.data, status: { const: 200 } },
    }),
  };
}

function failures(route: Route) {
  const byStatus = Map.groupBy([...new Set(codesOf(route))], (code) => ERROR_ANSWERS[code].status);
  return Object.fromEntries(
    [...byStatus]
      .toSorted(([a], [b]) => a - b)
      .map(([status, codes]) => [
        String(status),
        {
          description: codes
            .map((code) => `\`${code}\`: ${ERROR_ANSWERS[code].description}.`)
            .join('\n\n'),
          headers: {
            ...requestIdHeader,
            ...visibleHeader(route, status),
            ...(status === 429 || status === 503
              ? { 'Retry-After': { description: 'Seconds to wait', schema: { type: 'integer' } } }
              : {}),
          },
          content: json({
            allOf: [
              { $ref: '#/components/schemas/Failure' },
              { properties: { code: { enum: codes }, status: { const: status } } },
            ],
          }),
        },
      ]),
  );
}

const parameter = (name: string, where: 'path' | 'query', schema: TSchema | object) => {
  const { description } = schema as { description?: string };
  return {
    name,
    in: where,
    required: where === 'path',
    ...(description === undefined ? {} : { description }),
    schema,
  };
};

function parameters(route: Route) {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) =>
    parameter(name!, 'path', { type: 'string' }),
  );
  const inQuery = Object.entries((route.query ?? CommonQuery).properties).map(([name, schema]) =>
    parameter(name, 'query', schema),
  );
  return [...inPath, ...inQuery];
}

const operation = (route: Route) => ({
  operationId: route.operationId,
  summary: route.summary,
  ...(route.description === undefined ? {} : { description: route.description }),
  tags: [route.path.split('/')[2] ?? 'service'],
  security: route.access === 'open' ? [] : [{ apiKey: [] }, { bearer: [] }],
  parameters: parameters(route),
  ...(route.body ? { requestBody: { required: true, content: json(route.body) } } : {}),
  responses: { 200: success(route), ...failures(route) },
});

const Failure = {
  type: 'object',
  required: ['success', 'error', 'code', 'status', 'request_id'],
  properties: {
    success: { const: false },
    error: { type: 'string', description: 'One sentence for people' },
    code: { type: 'string', description: 'For machines; stable' },
    details: {
      type: 'object',
      description: 'What is wrong, by field',
      additionalProperties: {
        type: 'object',
        required: ['message', 'path'],
        properties: { message: { type: 'string' }, path: { type: 'string' } },
      },
    },
    status: { type: 'integer', description: 'Mirrors the HTTP status' },
    request_id: { type: 'string' },
  },
};

/** What is answered where there is no operation to describe it at. */
const elsewhere = (['not_found', 'method_not_allowed'] as const).map(
  (code) => `${ERROR_ANSWERS[code].status} \`${code}\`: ${ERROR_ANSWERS[code].description}.`,
);

/** The API as an OpenAPI 3.1 document, made from the same routes and schemas that serve it. */
export function openApiDocument(routes: readonly Route[]) {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) (paths[route.path] ??= {})[route.method] = operation(route);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Turnlog',
      version: '1.0.0',
      summary: 'Event-sourced AI agents',
      description: [
        'Create agents, list them, and run them in conversations. Every change and every turn is an event that is never rewritten.',
        'Beside what each operation answers, with the same body as every failure:',
        ...elsewhere,
      ].join('\n\n'),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        bearer: { type: 'http', scheme: 'bearer', description: 'The same API key' },
      },
      headers: {
        RequestId: {
          description:
            "Names the request in the service's log and events; a sane X-Request-Id of the client is kept",
          schema: { type: 'string' },
        },
        Visible: {
          description:
            '`false` where what was recorded may not be in later reads yet, because the read models took longer than ' +
            '`VISIBILITY_WAIT_MS`; absent otherwise',
          schema: { const: 'false' },
        },
      },
      schemas: { Failure },
    },
  };
}
