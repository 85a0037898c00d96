import { Type } from '../../../shared/domain/jsonSchema.ts';

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
