import { Type } from 'typebox';
import { numberedPageQuery } from '../openapi/commonSchemas.ts';

const Hash = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description });

const TurnRequest = Type.Object(
  {
    call: Type.Integer({ minimum: 1, description: 'Its place among the requests of the turn' }),
    purpose: Type.Enum(['answer', 'compaction'], {
      description: '`compaction`: it asked for a summary of older turns, right before the turn',
    }),
    round: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      description: 'Which answered call of the turn it was; null of a compaction',
    }),
    request: Type.Record(Type.String(), Type.Unknown(), {
      description:
        'The body, as the chat completions API has it; what asked for a stream is left out',
    }),
    request_sha256: Hash('SHA-256 in hex of `request` in canonical JSON (RFC 8785)'),
    recorded_sha256: Type.String({ description: 'The same of the request that was sent' }),
    matches: Type.Boolean({ description: 'Whether both are the same' }),
  },
  { title: 'TurnRequest', description: 'A model request of a turn, built again from events' },
);
export const TurnRequests = Type.Array(TurnRequest);

export const TurnRequestsQuery = Type.Object(
  numberedPageQuery('requests', 'Continues after this call'),
  { additionalProperties: false },
);
