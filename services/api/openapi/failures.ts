import { Type, type TObject } from 'typebox';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import { ERROR_ANSWERS } from '../http/errors/errorResponses.ts';
import type { Route } from '../http/route.ts';
import { replayed, retryAfter, visible, type HeaderUse } from './headers.ts';
import { described, type Collection } from './jsonSchema.ts';

/** Codes that any operation may answer, by what it takes. */
function codesOf(route: Route): ErrorCode[] {
  return [
    'invalid_request',
    'overloaded',
    ...(route.access === 'open'
      ? []
      : (['unauthorized', 'rate_limited', 'store_unavailable'] as const)),
    ...(route.method === 'get' ? [] : (['log_changed'] as const)),
    ...(route.access === 'open' || route.access === 'key' ? [] : (['forbidden'] as const)),
    ...(route.body
      ? (['invalid_json', 'payload_too_large', 'unsupported_media_type'] as const)
      : []),
    ...(route.once ? (['idempotency_conflict', 'stream_damaged', 'release_too_old'] as const) : []),
    ...route.errors,
    'internal_error',
  ];
}

const FailureDetail = Type.Object(
  {
    message: Type.String({ description: 'One sentence for people' }),
    path: Type.String({
      description: 'Where: a JSON pointer into the body, or `query/` and the parameter',
    }),
  },
  { title: 'FailureDetail', description: 'What is wrong with one field' },
);

const FailureDetails = Type.Record(Type.String(), FailureDetail, {
  title: 'FailureDetails',
  description: 'What is wrong, by field',
});

/** `agent_not_found` is AgentNotFound. */
const titleOf = (code: ErrorCode): string =>
  code
    .split('_')
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join('');

/** The failure of a code: a type of its own, so that a client's compiler knows which there are. */
const failure = (code: ErrorCode): TObject =>
  Type.Object(
    {
      success: Type.Literal(false),
      error: Type.String({ description: 'One sentence for people' }),
      code: Type.Literal(code, { description: 'For machines; stable' }),
      details: Type.Optional(FailureDetails),
      status: Type.Integer({
        const: ERROR_ANSWERS[code].status,
        description: 'Mirrors the HTTP status',
      }),
      request_id: Type.String({ description: 'Names the request in the service’s log' }),
    },
    { title: titleOf(code), description: `${ERROR_ANSWERS[code].description}.` },
  );

function oneOf(codes: readonly ErrorCode[], collection: Collection): object {
  const references = codes.map((code) => described(failure(code), collection));
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

/** The responses of an operation that failed, by status. */
export function failures(route: Route, headers: HeaderUse, collection: Collection) {
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
            ...headers,
            ...visible(route, status),
            ...replayed(route),
            ...retryAfter(status),
          },
          content: { 'application/json': { schema: oneOf(codes, collection) } },
        },
      ]),
  );
}
