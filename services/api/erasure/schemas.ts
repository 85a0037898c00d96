import { Type } from '../../../shared/domain/jsonSchema.ts';
import { Instant } from '../../../shared/domain/schema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { CommittedEvent, ProofLeaf } from '../proof/schemas.ts';
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

export const SubjectId = Type.String({
  pattern: '^(agent|replay|session|webhook)_[0-7][0-9a-hjkmnp-tv-z]{25}$',
  'x-rule': 'must be the id of an agent, a replay, a session or a webhook',
  examples: ['session_01kahz1c3sf6w9m3v5q7x9z1a3'],
  description: 'Identifier of what was erased',
});

export const ErasureReceipt = Type.Object(
  {
    turnlog_receipt: Type.Literal(1),
    subject: Type.Object(
      { stream: Type.String(), kind: Type.String(), id: Type.String() },
      { title: 'ErasureSubject', description: 'What was erased' },
    ),
    events: Type.Integer({
      minimum: 0,
      description: 'How many events the subject had before its erasure: revisions from 0',
    }),
    event: CommittedEvent,
    leaf: ProofLeaf,
    proof: Type.String({
      description:
        'A C2SP tlog-proof that the leaf is in the tree of the checkpoint, which it ends with',
    }),
  },
  {
    title: 'ErasureReceipt',
    description: 'Names what was erased, and proves that its erasure is in the transparency log',
  },
);

const erasureFields = {
  erased_at: Instant,
  event: ErasureEvent,
  receipt: Type.Union([Type.String(), Type.Null()], {
    description:
      'The proof that the erasure is in the transparency log (C2SP tlog-proof); null until it covers the erasure',
  }),
  erasure_receipt: Type.Union([ErasureReceipt, Type.Null()], {
    description:
      'The receipt, which contains the proof; null until the transparency log covers the erasure: `GET /v1/erasures/{subjectId}` returns it later',
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
