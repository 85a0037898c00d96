import { Type } from '../../../shared/domain/jsonSchema.ts';
import { EventMetadata } from '../../../shared/eventlog/event.ts';
import { numberedPageQuery, SessionId } from '../openapi/commonSchemas.ts';
import { CheckpointNote } from '../transparency/schemas.ts';

export const ProofLeaf = Type.Object(
  {
    hash: Type.String({ description: 'Of the event' }),
    index: Type.Integer({ minimum: 0, description: 'Its place in the whole log, from 0' }),
  },
  {
    title: 'ProofLeaf',
    description: 'The leaf of the proven event: its canonical JSON (RFC 8785) is the entry',
  },
);

const committed = {
  id: Type.String({ format: 'uuid' }),
  stream: Type.String(),
  revision: Type.Integer({ minimum: 0 }),
  type: Type.String(),
  data: Type.Object(
    {},
    {
      title: 'CommittedData',
      description:
        'The recorded data with `{"sha256": …}` instead of each text, with `"erased": true` for an erased text',
      additionalProperties: true,
    },
  ),
  metadata: EventMetadata,
};

export const CommittedEvent = Type.Object(committed, {
  title: 'CommittedEvent',
  description: 'An event without its texts, as its hash covers it',
});

const IncludedEvent = Type.Object(
  {
    ...committed,
    inclusion: Type.Object(
      {
        index: Type.Integer({
          minimum: 0,
          description: 'The index of the event’s leaf, whose entry has it and the event’s hash',
        }),
        hashes: Type.Array(Type.String(), {
          description:
            'The inclusion proof of the leaf under `checkpoint` (RFC 6962), in base64, the leaf’s sibling first',
        }),
      },
      {
        title: 'EventInclusion',
        description:
          'The proof that the event is in the tree of the checkpoint; no part of the event',
      },
    ),
  },
  {
    title: 'IncludedEvent',
    description: 'An event without its texts, as its hash covers it, and its inclusion proof',
  },
);

export const SessionProof = Type.Object(
  {
    session_id: SessionId,
    revision: Type.Integer({ minimum: 0, description: 'Of the last event' }),
    event_id: Type.String({ format: 'uuid', description: 'Of the last event' }),
    leaf: ProofLeaf,
    proof: Type.String({
      description:
        'A C2SP tlog-proof that the leaf is in the tree of the checkpoint, which it ends with',
    }),
    checkpoint: CheckpointNote,
    events: Type.Array(IncludedEvent),
  },
  {
    title: 'SessionProof',
    description: 'The chain of a session, and the proof that its events are in the log',
  },
);

export const SessionProofQuery = Type.Object(
  numberedPageQuery('events', 'Continues after this revision'),
  { additionalProperties: false },
);
