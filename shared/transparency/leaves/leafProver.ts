import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import type { Position } from '../../ports/eventStore.ts';
import type { TileReader } from '../tileStore.ts';
import { createLeafFinder, leafEntry, findLeafIndex } from '../tlog/leaf.ts';
import { leafHash } from '../tlog/merkle.ts';
import { createInclusionProver, createPathReader } from '../tlog/proofs.ts';
import { createInclusionChecker } from '../tlog/subtrees.ts';
import { verifyInclusion, type TreeHead } from '../tlog/verify.ts';
import { cachedTree } from './cachedTree.ts';

/** The event to prove. */
export interface ProvenEvent {
  position: Position;
  hash: string;
}

/** The leaf of an event, and the hashes that prove it. */
export interface LeafProof {
  /** 0-based. */
  index: number;
  hashes: readonly Uint8Array[];
}

/** Undefined for an event that has no leaf, or one that is not after the leaf before. */
export type LeafProver = (event: ProvenEvent) => Promise<LeafProof | undefined>;

const unprovable = (index: number, { size }: TreeHead): Error =>
  proofInvalidError(
    `The tiles of the transparency log don't lead from leaf ${index} to its checkpoint of ${size}: files were changed. audit verify says which; put them back from a backup.`,
  );

/**
 * Proves each event by itself under a checkpoint. Throws `proof_invalid` when the tiles do not lead
 * to it.
 */
export function createSingleProver(tiles: TileReader, head: TreeHead): LeafProver {
  const tree = cachedTree(tiles);
  const readPath = createPathReader(tree, head.size);
  return async (event) => {
    const index = await findLeafIndex(tree, event, head.size);
    if (index === undefined) return undefined;
    const hashes = await readPath(index);
    if (!verifyInclusion(hashes, index, leafHash(leafEntry(event.hash, index)), head))
      throw unprovable(index, head);
    return { index, hashes };
  };
}

/**
 * Proves the events of a stream in their order under a checkpoint, each by what the proofs before
 * it have not shown (subtrees.ts). Throws `proof_invalid` when the tiles do not lead to it.
 */
export function createLeafProver(tiles: TileReader, head: TreeHead): LeafProver {
  const tree = cachedTree(tiles);
  const find = createLeafFinder(tree, head.size);
  const prove = createInclusionProver(tree, head.size);
  const check = createInclusionChecker(head);
  let last = -1;
  return async (event) => {
    const index = await find(event);
    if (index === undefined || index <= last) return undefined;
    last = index;
    const hashes = await prove(index);
    if (!check(leafHash(leafEntry(event.hash, index)), index, hashes))
      throw unprovable(index, head);
    return { index, hashes };
  };
}
