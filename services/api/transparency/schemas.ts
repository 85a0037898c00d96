import { Type } from 'typebox';
import { EventMetadata } from '../../../shared/eventlog/event.ts';
import { numberedPageQuery, SessionId } from '../openapi/commonSchemas.ts';

export const CheckpointNote = Type.String({
  description:
    'A C2SP tlog-checkpoint: origin, size, root hash, then the signatures of the log and of its witnesses',
  examples: [
    'turnlog/0d6f6d0e\n1024\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— turnlog/0d6f6d0e Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n',
  ],
});

export const Tile = Type.Unsafe<string>({
  type: 'string',
  format: 'binary',
  description: 'Up to 256 hashes of 32 bytes',
});

export const Entries = Type.Unsafe<string>({
  type: 'string',
  format: 'binary',
  description:
    'Up to 256 entries, each its length in two bytes (big-endian) and then `{"hash":…,"index":…}`: the hash of an event and its place in the log',
});

export const TileLevel = Type.String({
  pattern: '^([0-9]|[1-5][0-9]|6[0-3])$',
  description: 'Level of the tile; 0 holds the hashes of leaves',
  examples: ['0'],
});

export const TileIndex = Type.String({
  pattern: '^[0-9]{3}$',
  description:
    'Number of the tile in its level, in three digits. From 1,000 on it takes several segments (`x001/234`), and of a tile that is not full the path goes on with `.p/` and how many there are (`067.p/5`)',
  examples: ['000'],
});

const Leaf = Type.Object(
  {
    hash: Type.String({ description: 'Of the session’s last event' }),
    index: Type.Integer({ minimum: 0, description: 'Its place in the whole log, from 0' }),
  },
  {
    title: 'ProofLeaf',
    description: 'The leaf of the session’s last event: its canonical JSON (RFC 8785) is the entry',
  },
);

const CommittedEvent = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    stream: Type.String(),
    revision: Type.Integer({ minimum: 0 }),
    type: Type.String(),
    data: Type.Object(
      {},
      {
        title: 'CommittedData',
        description:
          'As it was recorded, with `{"sha256": …}` in place of each text, and `"erased": true` in it where the text was erased',
        additionalProperties: true,
      },
    ),
    metadata: EventMetadata,
  },
  { title: 'CommittedEvent', description: 'An event without its texts: what its hash covers' },
);

export const SessionProof = Type.Object(
  {
    session_id: SessionId,
    revision: Type.Integer({ minimum: 0, description: 'Of the last event' }),
    event_id: Type.String({ format: 'uuid', description: 'Of the last event' }),
    leaf: Leaf,
    proof: Type.String({
      description:
        'A C2SP tlog-proof: that the leaf is in the tree of the checkpoint, which is its end',
    }),
    checkpoint: CheckpointNote,
    events: Type.Array(CommittedEvent),
  },
  {
    title: 'SessionProof',
    description: 'The chain of a session, and the proof that its last event is in the log',
  },
);

export const SessionProofQuery = Type.Object(
  numberedPageQuery('events', 'Continues after this revision'),
  { additionalProperties: false },
);
