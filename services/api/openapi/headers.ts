import type { Route } from '../http/route.ts';
import { IDEMPOTENCY_KEY } from '../http/idempotency.ts';

/** The headers of a response, by reference. */
export type HeaderReferences = Readonly<Record<string, { $ref: string }>>;

const headerReference = (name: string) => ({ $ref: `#/components/headers/${name}` });

/** Headers of responses with any status. */
export const commonHeaders = ({ access }: Route): HeaderReferences => ({
  'X-Request-Id': headerReference('RequestId'),
  ...(access !== 'open' && {
    RateLimit: headerReference('RateLimit'),
    'RateLimit-Policy': headerReference('RateLimitPolicy'),
  }),
});

/** For responses to changes that may have been recorded, or that the request may have waited for. */
export const visibleHeader = ({ method, prefer }: Route, status: number): HeaderReferences =>
  (method !== 'get' || prefer !== undefined) && (status < 400 || status >= 500)
    ? { 'X-Turnlog-Visible': headerReference('Visible') }
    : {};

export const retryAfterHeader = (status: number): HeaderReferences =>
  status === 429 || status === 503 ? { 'Retry-After': headerReference('RetryAfter') } : {};

/** For operations that accept `Idempotency-Key`. */
export const idempotencyReplayedHeader = ({ idempotency }: Route): HeaderReferences =>
  idempotency ? { 'Idempotency-Replayed': headerReference('IdempotencyReplayed') } : {};

/** For lists in pages. */
export const linkHeader = ({ query }: Route): HeaderReferences =>
  query?.properties['after'] === undefined ? {} : { Link: headerReference('Link') };

/** For 401. */
export const authenticateHeader = (status: number): HeaderReferences =>
  status === 401 ? { 'WWW-Authenticate': headerReference('Authenticate') } : {};

/** For erasures whose response links the proof. */
export const proofLinkHeader = ({ returnsProofLink }: Route): HeaderReferences =>
  returnsProofLink ? { Link: headerReference('ProofLink') } : {};

export const etagHeader = headerReference('ETag');

const textHeader = (description: string, examples: string[]) => ({
  description,
  schema: { type: 'string', examples },
});

/** For operations that follow a `Prefer`. */
export const preferenceAppliedHeader = ({ prefer }: Route): HeaderReferences =>
  prefer === undefined ? {} : { 'Preference-Applied': headerReference('PreferenceApplied') };

export const locationHeader = headerReference('Location');

/** For failures of operations that start a turn. */
export const turnLocationHeader = ({ accepted, data }: Route): HeaderReferences =>
  accepted && accepted !== data ? { Location: headerReference('TurnLocation') } : {};

/** The response headers of the document. */
export const RESPONSE_HEADERS = {
  RequestId: {
    ...textHeader(
      "Identifies the request in the service's log; a valid X-Request-Id of the client is kept, and recorded in events if it is a random UUID",
      ['01a20125-005b-7849-be70-bae55c741683'],
    ),
    required: true,
  },
  RetryAfter: {
    description:
      'Seconds to wait before a retry; absent from a recorded failure that is sent again, and where the turn was cancelled',
    schema: { type: 'integer', minimum: 0, examples: [1] },
  },
  Link: textHeader('With `rel="next"`: where the next page is; absent on the last one', [
    '</v1/agents?limit=1&after=agent_01kahz0b2re5v8k2s4n6t8w0y2>; rel="next"',
  ]),
  ProofLink: textHeader('With `rel="describedby"`: where the proof of the session is', [
    '</v1/sessions/session_01kahz1c3sf6w9m3v5q7x9z1a3/proof>; rel="describedby"',
  ]),
  Authenticate: textHeader('The scheme in which a key may be sent (RFC 9110)', ['Bearer']),
  ETag: textHeader(
    'Identifies this revision or content, for `If-Match` or `If-None-Match` where the operation has that header',
    ['W/"1b2m2y8asgtpgamy7phcfg"'],
  ),
  IdempotencyReplayed: {
    description:
      '`true` if the response is that of an earlier request with the same `Idempotency-Key`; absent otherwise',
    schema: { type: 'string', const: 'true' },
  },
  RateLimit: textHeader(
    'Remaining requests of the key and seconds until its limit resets (draft-ietf-httpapi-ratelimit-headers); absent without an API key',
    ['"key";r=50;t=1'],
  ),
  RateLimitPolicy: textHeader('The limit of the key: requests and window in seconds', [
    '"key";q=100;w=1',
  ]),
  PreferenceApplied: textHeader('The preferences of `Prefer` that were followed (RFC 7240)', [
    'wait=30',
  ]),
  Location: {
    ...textHeader('The path of what was created, or of the operation that continues', [
      '/v1/sessions/session_01kahz1c3sf6w9m3v5q7x9z1a3/turns/1',
    ]),
    required: true,
  },
  TurnLocation: textHeader('The path of the turn that the request started, if it did', [
    '/v1/sessions/session_01kahz1c3sf6w9m3v5q7x9z1a3/turns/1',
  ]),
  Visible: {
    description:
      '`false` if later reads may not include the recorded change yet, because the read models took longer than ' +
      '`VISIBILITY_WAIT_MS` or the `wait` of the request; absent otherwise',
    schema: { type: 'string', const: 'false' },
  },
};

const ifNoneMatch = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'The `ETag` of a response that the client has cached',
  schema: { type: 'string' },
};

const prefer = (description: string) => ({
  name: 'Prefer',
  in: 'header',
  required: false,
  description: `Preferences (RFC 7240); others are ignored. ${description}`,
  schema: { type: 'string' },
});

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes the request safe to retry: a unique key chosen by the client that is hard to guess, such as a UUID, quoted or bare (draft-ietf-httpapi-idempotency-key-header)',
  schema: {
    type: 'string',
    pattern: IDEMPOTENCY_KEY,
    examples: ['"8e03978e-40d5-43e8-bc93-6894a57f9324"'],
  },
};

const ifMatch = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'The `ETag` of the resource that the client has, or several; if it is at another revision, nothing is recorded',
  schema: { type: 'string', examples: ['"0-1b2m2y8asgtpgamy7phcfg"'] },
};

/** The request headers of an operation, apart from its own. */
export const headerParameters = (route: Route) => [
  ...(route.ifNoneMatch ? [ifNoneMatch] : []),
  ...(route.prefer === undefined ? [] : [prefer(route.prefer)]),
  ...(route.idempotency ? [idempotencyKey] : []),
  ...(route.ifMatch ? [ifMatch] : []),
];
