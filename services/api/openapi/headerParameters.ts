import { IDEMPOTENCY_KEY } from '../http/idempotency.ts';
import type { Route } from '../http/route.ts';

const ifNoneMatch = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'The `ETag` of an answer that the client has kept',
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
    'Makes the request safe to send again: a key of the client’s own for it, hard to guess, such as a UUID, in quotes or as it is (draft-ietf-httpapi-idempotency-key-header)',
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
    'The `ETag` of the agent as the client knows it, or several; where it is at another revision, nothing is recorded',
  schema: { type: 'string', examples: ['"0-1b2m2y8asgtpgamy7phcfg"'] },
};

/** The headers that an operation looks at beside its own. */
export const headerParameters = (route: Route) => [
  ...(route.ifNoneMatch ? [ifNoneMatch] : []),
  ...(route.prefer === undefined ? [] : [prefer(route.prefer)]),
  ...(route.idempotency ? [idempotencyKey] : []),
  ...(route.ifMatch ? [ifMatch] : []),
];
