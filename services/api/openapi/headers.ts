import type { Route } from '../http/route.ts';

/** The headers of a response, by reference. */
export type HeaderUse = Readonly<Record<string, { $ref: string }>>;

const use = (name: string) => ({ $ref: `#/components/headers/${name}` });

/** What answers of any status may carry. */
export const anyAnswer = ({ access }: Route): HeaderUse => ({
  'X-Request-Id': use('RequestId'),
  ...(access !== 'open' && {
    RateLimit: use('RateLimit'),
    'RateLimit-Policy': use('RateLimitPolicy'),
  }),
});

/** Of what may have been recorded. */
export const visible = ({ method }: Route, status: number): HeaderUse =>
  method !== 'get' && (status < 400 || status >= 500)
    ? { 'X-Turnlog-Visible': use('Visible') }
    : {};

export const retryAfter = (status: number): HeaderUse =>
  status === 429 || status === 503 ? { 'Retry-After': use('RetryAfter') } : {};

/** Of what may be sent again under a key of the client. */
export const replayed = ({ once }: Route): HeaderUse =>
  once ? { 'Idempotency-Replayed': use('IdempotencyReplayed') } : {};

/** Of a list that is answered in pages. */
export const link = ({ query }: Route): HeaderUse =>
  query?.properties['after'] === undefined ? {} : { Link: use('Link') };

/** Of what may be asked for again with `If-None-Match`. */
export const etag = use('ETag');

const text = (description: string, examples: string[]) => ({
  description,
  schema: { type: 'string', examples },
});

/** Of what follows a `Prefer`. */
export const preferenceApplied = ({ prefer }: Route): HeaderUse =>
  prefer === undefined ? {} : { 'Preference-Applied': use('PreferenceApplied') };

/** Of what goes on after its answer. */
export const location = use('Location');

/** The headers of the document. */
export const HEADERS = {
  RequestId: {
    ...text(
      "Names the request in the service's log and events; a sane X-Request-Id of the client is kept",
      ['01a20125-005b-7849-be70-bae55c741683'],
    ),
    required: true,
  },
  RetryAfter: {
    description:
      'Seconds to wait before the request is sent again; absent where it is not meant to be, since its turn was cancelled',
    schema: { type: 'integer', minimum: 0, examples: [1] },
  },
  Link: text('With `rel="next"`: where the next page is; absent on the last one', [
    '</v1/agents?limit=1&after=agent_01kahz0b2re5v8k2s4n6t8w0y2>; rel="next"',
  ]),
  ETag: text('Names this content; send it as `If-None-Match`, and get 304 while it is the same', [
    'W/"1b2m2y8asgtpgamy7phcfg"',
  ]),
  IdempotencyReplayed: {
    description:
      '`true` where the answer is that of an earlier request with the same `Idempotency-Key`; absent otherwise',
    schema: { type: 'string', const: 'true' },
  },
  RateLimit: text(
    'What is left of the limit of the key and in how many seconds it is whole again (draft-ietf-httpapi-ratelimit-headers); absent where no key was taken',
    ['"key";r=50;t=1'],
  ),
  RateLimitPolicy: text('The limit of the key: so many requests in so many seconds', [
    '"key";q=100;w=1',
  ]),
  PreferenceApplied: text('Which preferences of `Prefer` were followed (RFC 7240)', ['wait=30']),
  Location: {
    ...text('Where what goes on is to be had, as a path', [
      '/v1/sessions/session_01kahz1c3sf6w9m3v5q7x9z1a3/turns/1',
    ]),
    required: true,
  },
  Visible: {
    description:
      '`false` where what was recorded may not be in later reads yet, because the read models took longer than ' +
      '`VISIBILITY_WAIT_MS`; absent otherwise',
    schema: { type: 'string', const: 'false' },
  },
};
