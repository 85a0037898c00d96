import { Type } from '../domain/jsonSchema.ts';
import { eventSchema, type EventOf } from '../domain/schema.ts';

/** Data that the first attempt fixes for later attempts. Contains no text of a person. */
const Reserved = Type.Object(
  {
    id: Type.Optional(
      Type.String({ description: 'The id of what the request makes: an agent, a session' }),
    ),
    revision: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'Of the stream that the request adds to: what it wrote follows this event',
      }),
    ),
    turn: Type.Optional(
      Type.Integer({ minimum: 0, description: 'The turn of a session that the request is about' }),
    ),
  },
  { description: 'What the first try fixed for every later one' },
);

const RequestBegun = eventSchema(
  'request.begun.v1',
  {
    operation: Type.String({ description: 'The operation of the API' }),
    body_hmac: Type.String({
      description:
        'HMAC-SHA256 in hex of query and body under the client’s key, and under a secret of the account that is in no log: it tells another body, and confirms no guess',
    }),
    reserved: Reserved,
  },
  'A request with an `Idempotency-Key` came for the first time',
);

export const requestEventSchemas = [RequestBegun] as const;

export type RequestEvent = EventOf<(typeof requestEventSchemas)[number]>;
export type RequestBegunData = RequestEvent['data'];
export type Reserved = RequestBegunData['reserved'];
