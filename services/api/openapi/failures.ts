import type { TObject } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import type { ErrorResponse, ErrorResponses } from '../http/errors/errorPresenter.ts';
import type { Api } from '../http/feature.ts';
import type { Route } from '../http/route.ts';
import {
  authenticateHeader,
  idempotencyReplayedHeader,
  retryAfterHeader,
  turnLocationHeader,
  visibleHeader,
  type HeaderReferences,
} from './headers.ts';
import { failureFields } from './commonSchemas.ts';
import { addSchema, type SchemaCollection } from './jsonSchema.ts';

/** The error codes of a route, including those that follow from its access, method and body. */
function errorCodesOf(route: Route): ErrorCode[] {
  return [
    'invalid_request',
    'overloaded',
    ...(route.access === 'open'
      ? []
      : ([
          'unauthorized',
          'rate_limited',
          'store_unavailable',
          'read_model_damaged',
          'stream_damaged',
        ] as const)),
    ...(route.method === 'get'
      ? []
      : (['log_changed', 'invalid_json', 'payload_too_large', 'unsupported_media_type'] as const)),
    ...(route.method === 'get' || route.method === 'delete'
      ? []
      : (['quota_exceeded', 'storage_full'] as const)),
    ...(route.access === 'open' || route.access === 'key' ? [] : (['forbidden'] as const)),
    ...(route.idempotency
      ? (['idempotency_conflict', 'stream_damaged', 'release_too_old'] as const)
      : []),
    ...route.errors,
    'internal_error',
  ];
}

/** `AgentNotFound` for `agent_not_found`. */
const titleOf = (code: ErrorCode): string =>
  code
    .split('_')
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join('');

/** Each code has its own type, so that the compilers of clients know the possible codes. */
const failureSchema = (code: ErrorCode, { status, description }: ErrorResponse): TObject =>
  Type.Object(
    {
      ...failureFields,
      code: Type.Literal(code, { description: 'For machines; stable' }),
      status: Type.Integer({ const: status, description: 'Mirrors the HTTP status' }),
    },
    { title: titleOf(code), description: `${description}.` },
  );

function oneOf(
  codes: readonly ErrorCode[],
  responses: ErrorResponses,
  collection: SchemaCollection,
): object {
  const references = codes.map((code) =>
    addSchema(failureSchema(code, responses[code]), collection),
  );
  return references.length === 1
    ? references[0]!
    : {
        type: 'object',
        oneOf: references,
        discriminator: {
          propertyName: 'code',
          mapping: Object.fromEntries(
            codes.map((code, index) => [code, references[index]!['$ref']]),
          ),
        },
      };
}

/** The error responses of an operation, by status. */
export function failureResponses(
  route: Route,
  { errorResponses: responses }: Pick<Api, 'errorResponses'>,
  headers: HeaderReferences,
  collection: SchemaCollection,
) {
  const byStatus = Map.groupBy([...new Set(errorCodesOf(route))], (code) => responses[code].status);
  return Object.fromEntries(
    [...byStatus]
      .toSorted(([a], [b]) => a - b)
      .map(([status, codes]) => [
        String(status),
        {
          description: codes
            .map((code) => `\`${code}\`: ${responses[code].description}.`)
            .join('\n\n'),
          headers: {
            ...headers,
            ...visibleHeader(route, status),
            ...idempotencyReplayedHeader(route),
            ...retryAfterHeader(status),
            ...authenticateHeader(status),
            ...turnLocationHeader(route),
          },
          content: { 'application/json': { schema: oneOf(codes, responses, collection) } },
        },
      ]),
  );
}
