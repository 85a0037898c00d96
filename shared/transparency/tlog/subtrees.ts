/**
 * Inclusion proofs of increasing leaves: the path of a leaf shows the roots of all subtrees on its
 * right, so that a later leaf needs only the path within the one that holds it.
 */
import { splitOf } from './merkle.ts';
import { verifyInclusion, type TreeHead } from './verify.ts';

/** The leaves from `lo` up to but excluding `hi`. */
export interface Subtree {
  lo: number;
  hi: number;
}

/**
 * The subtrees on the right of a leaf's path within a subtree, the nearest last. There are as many
 * as the path has steps to the left.
 */
export function subtreesAfter({ lo, hi }: Subtree, index: number): Subtree[] {
  if (hi - lo === 1) return [];
  const split = lo + splitOf(hi - lo);
  return index < split
    ? [{ lo: split, hi }, ...subtreesAfter({ lo, hi: split }, index)]
    : subtreesAfter({ lo: split, hi }, index);
}

/**
 * Removes the subtree of a leaf, and those before it, from subtrees whose nearest is the last.
 * Undefined when none has the leaf.
 */
export function takeSubtree<Shown extends Subtree>(
  shown: Shown[],
  index: number,
): Shown | undefined {
  for (let next = shown.pop(); next; next = shown.pop())
    if (index < next.hi) return index >= next.lo ? next : undefined;
  return undefined;
}

/**
 * Returns a function that verifies the proofs of `createInclusionProver`, one after the other: true
 * when the tree has a leaf with this hash at this index, after the one before. Keeps one hash for
 * each level of the tree at most.
 */
export function createInclusionChecker({
  size,
  root,
}: TreeHead): (leaf: Uint8Array, index: number, hashes: readonly Uint8Array[]) => boolean {
  const shown: (Subtree & { root: Uint8Array })[] = [{ lo: 0, hi: size, root }];
  return (leaf, index, hashes) => {
    const subtree = takeSubtree(shown, index);
    if (!subtree) return false;
    const { lo, hi } = subtree;
    const head = { size: hi - lo, root: subtree.root };
    if (!verifyInclusion(hashes, index - lo, leaf, head)) return false;
    shown.push(...rightOf(subtree, index, hashes));
    return true;
  };
}

/** The subtrees after a leaf, with their roots, which its verified path has. */
function rightOf(
  { lo, hi }: Subtree,
  index: number,
  hashes: readonly Uint8Array[],
): (Subtree & { root: Uint8Array })[] {
  if (hi - lo === 1) return [];
  const split = lo + splitOf(hi - lo);
  const below = hashes.slice(0, -1);
  return index < split
    ? [{ lo: split, hi, root: hashes.at(-1)! }, ...rightOf({ lo, hi: split }, index, below)]
    : rightOf({ lo: split, hi }, index, below);
}
