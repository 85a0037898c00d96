import { Type } from 'typebox';
import { Instant } from '../../../shared/domain/schema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { AgentId, CommonQuery, SessionId, textSchema } from '../openapi/commonSchemas.ts';

export const ErasureQuery = Type.Object(
  {
    ...CommonQuery.properties,
    note: Type.Optional(
      textSchema({
        maxLength: LIMITS.text.noteCharacters,
        description:
          'The reason, for readers of the log, at most 256 characters. It is never erased: don’t include personal data',
      }),
    ),
  },
  { additionalProperties: false },
);

const ErasureEvent = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    revision: Type.Integer({ minimum: 0, description: 'Its place in its stream: the last one' }),
    hash: Type.String({ description: 'Its hash, which ends the chain of the stream' }),
  },
  { title: 'ErasureEvent', description: 'The event that records an erasure' },
);

const erasureFields = {
  erased_at: Instant,
  event: ErasureEvent,
  receipt: Type.Union([Type.String(), Type.Null()], {
    description:
      'The proof that the erasure is in the transparency log (C2SP tlog-proof); null until it covers the erasure',
  }),
};

export const ErasedSession = Type.Object(
  { session_id: SessionId, ...erasureFields },
  { title: 'ErasedSession', description: 'A session whose texts were erased' },
);
export const ErasedAgent = Type.Object(
  { agent_id: AgentId, ...erasureFields },
  { title: 'ErasedAgent', description: 'An agent whose texts were erased' },
);
