import { LRUCache } from 'lru-cache';
import type { SignedHead } from '../ownTree.ts';
import { leafEntry } from '../tlog/leaf.ts';
import { HASH_BYTES, leafHash } from '../tlog/merkle.ts';
import { inclusionProof } from '../tlog/proofs.ts';
import { readHashes, cacheTiles, type Tiles } from '../tlog/readTiles.ts';
import { TILE_WIDTH, widthAt } from '../tlog/tiles.ts';
import { verifyInclusion, type TreeHead } from '../tlog/verify.ts';

/** Tiles whose hashes are held once they were shown to lead to a checkpoint; one has 8 KiB. */
const MAX_TILES = 256;

type Head = TreeHead & Pick<SignedHead, 'treeId'>;

/**
 * Returns true if the tiles of a tree lead from the leaf of an event, at an index below the size of a signed
 * head, to its root. Throws `proof_invalid` when tiles are missing.
 */
export type LeadsToHead = (
  tiles: Tiles,
  head: Head,
  leaf: { index: number; hash: string },
) => Promise<boolean>;

/**
 * An account that can write to the files of the tree can change entries and tiles, but not the signed root.
 * One proof shows all hashes of a tile, so that the other leaves in it cost one hash each.
 */
export function createSignedLeaves(): LeadsToHead {
  const shown = new LRUCache<string, Buffer>({ max: MAX_TILES });

  /** The hashes of the tile of leaves, if they lead to the root. */
  async function tileHashes(
    tiles: Tiles,
    { treeId, size, root }: Head,
    index: number,
  ): Promise<Buffer | undefined> {
    const tile = Math.floor(index / TILE_WIDTH);
    // Trees with one id have the same leaves, and so the same tiles of a width.
    const id = `${treeId}/${tile}/${widthAt(0, tile, size)}`;
    const cached = shown.get(id);
    if (cached) return cached;
    const once = cacheTiles(tiles);
    const hashes = await readHashes(once, { level: 0, index: tile, size });
    const proof = await inclusionProof(once, index, size);
    const hash = hashes[index % TILE_WIDTH]!;
    if (!verifyInclusion(proof, index, hash, { size, root })) return undefined;
    const all = Buffer.concat(hashes);
    shown.set(id, all);
    return all;
  }

  return async (tiles, head, { index, hash }) => {
    const at = (index % TILE_WIDTH) * HASH_BYTES;
    const hashes = await tileHashes(tiles, head, index);
    return hashes?.subarray(at, at + HASH_BYTES).equals(leafHash(leafEntry(hash, index))) ?? false;
  };
}
