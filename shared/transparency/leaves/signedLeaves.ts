import { LRUCache } from 'lru-cache';
import type { IdentifiableLog } from '../../eventlog/identity/logIdentity.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { readLogTrees, type LogTrees } from '../logTrees.ts';
import { openCheckpoint } from '../proof/openCheckpoint.ts';
import type { TileReader } from '../tileStore.ts';
import { parseCheckpoint, type CheckpointText } from '../tlog/checkpoint.ts';
import { leafEntry } from '../tlog/leaf.ts';
import { HASH_BYTES, leafHash } from '../tlog/merkle.ts';
import { parseNote } from '../tlog/note.ts';
import { parseVkey } from '../tlog/noteKeys.ts';
import { inclusionProof } from '../tlog/proofs.ts';
import { readHashes, remembering, type Tiles } from '../tlog/readTiles.ts';
import { TILE_WIDTH, widthAt } from '../tlog/tiles.ts';
import { verifyInclusion } from '../tlog/verify.ts';

/** Tiles whose hashes are held once they were shown to lead to a checkpoint; one has 8 KiB. */
const MAX_TILES = 256;

const isOf = (treeId: string, origin: string): boolean => origin.endsWith(`/${treeId}`);

/** Leaves under the newest checkpoint that a key has signed which the log declares. */
export interface SignedLeaves {
  /**
   * Reads the newest checkpoint. One that is older, or is signed by another key, is passed over where
   * one is known. Throws `proof_invalid` where none is, and that of a declared tree can't be opened.
   */
  refresh(): Promise<void>;
  /** The leaves under the newest known checkpoint, 0 without one. */
  size(): number;
  /**
   * True when the tiles of a tree of `size` leaves lead from a leaf to the root that was signed, false when
   * they do not, and undefined where the checkpoint does not cover the leaf, or the tree is smaller: a
   * renamed log makes its tree anew. Throws `proof_invalid` when tiles are missing.
   */
  leads(
    tiles: Tiles,
    leaf: { index: number; size: number },
    hash: string,
  ): Promise<boolean | undefined>;
}

/**
 * Opens a checkpoint of the log's current tree; undefined for another one. Throws `proof_invalid` where
 * none of the declared keys has signed it.
 */
function open(note: string, { declared, treeId }: LogTrees): CheckpointText | undefined {
  const { origin } = parseCheckpoint(parseNote(note).text);
  const vkeys = isOf(treeId, origin) ? declared.get(origin)?.vkeys : undefined;
  return vkeys && openCheckpoint(note, vkeys.map(parseVkey)).checkpoint;
}

/**
 * Anyone who can write to the files of the tree can change entries and tiles, but not what was signed.
 * One proof shows all hashes of a tile, so that the other leaves in it cost one hash each.
 */
export function createSignedLeaves(
  log: Pick<IdentifiableLog, 'firstEvent' | 'readStream'>,
  reader: Pick<TileReader, 'readCheckpoint'>,
): SignedLeaves {
  const shown = new LRUCache<string, Buffer>({ max: MAX_TILES });
  let head: CheckpointText | undefined;
  let text: string | undefined;

  /** The hashes of the tile of leaves, if they lead to the root. */
  async function tileHashes(
    tiles: Tiles,
    index: number,
    checkpoint: CheckpointText,
  ): Promise<Buffer | undefined> {
    const { origin, size } = checkpoint;
    const tile = Math.floor(index / TILE_WIDTH);
    const id = `${tile}/${widthAt(0, tile, size)}`;
    const known = shown.get(id);
    if (known) return known;
    const once = remembering(tiles);
    const hashes = await readHashes(once, { level: 0, index: tile, size });
    const proof = await inclusionProof(once, index, size);
    if (!verifyInclusion(proof, index, hashes[index % TILE_WIDTH]!, checkpoint)) return undefined;
    const all = Buffer.concat(hashes);
    // A checkpoint of another tree may have been read meanwhile.
    if (head?.origin === origin) shown.set(id, all);
    return all;
  }

  return {
    async refresh() {
      const note = await reader.readCheckpoint();
      if (note === undefined ? !head : note === text) return;
      const trees = await readLogTrees(log);
      if (head && trees && !isOf(trees.treeId, head.origin)) head = undefined;
      if (note === undefined || !trees) return;
      let next: CheckpointText | undefined;
      try {
        next = open(note, trees);
      } catch (error) {
        if (!head || !isTurnlogError(error, 'proof_invalid')) throw error;
      }
      if (!next) return;
      text = note;
      if (next.origin !== head?.origin) shown.clear();
      else if (next.size < head.size) return;
      head = next;
    },
    size: () => head?.size ?? 0,
    async leads(tiles, { index, size }, hash) {
      const checkpoint = head;
      if (!checkpoint || index >= checkpoint.size || size < checkpoint.size) return undefined;
      const at = (index % TILE_WIDTH) * HASH_BYTES;
      const hashes = await tileHashes(tiles, index, checkpoint);
      return (
        hashes?.subarray(at, at + HASH_BYTES).equals(leafHash(leafEntry(hash, index))) ?? false
      );
    },
  };
}
