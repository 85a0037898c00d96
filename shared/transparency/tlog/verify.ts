/** Verifies proofs of RFC 6962 without access to tiles. */
import { EMPTY_ROOT, nodeHash, splitOf } from './merkle.ts';

/** The size and root of a tree, as in its checkpoint. */
export interface TreeHead {
  /** Number of leaves. */
  size: number;
  root: Uint8Array;
}

type Hashes = readonly Uint8Array[];

const same = (actual: Uint8Array | undefined, expected: Uint8Array): boolean =>
  actual !== undefined && Buffer.compare(actual, expected) === 0;

/** Computes the root from a proof; undefined when the proof is too long or too short. */
function rootFrom(
  proof: Hashes,
  { lo, hi, index }: { lo: number; hi: number; index: number },
  leaf: Uint8Array,
): Uint8Array | undefined {
  const last = proof.at(-1);
  if (hi - lo === 1) return last ? undefined : leaf;
  if (!last) return undefined;
  const split = lo + splitOf(hi - lo);
  const side = index < split ? { lo, hi: split, index } : { lo: split, hi, index };
  const below = rootFrom(proof.slice(0, -1), side, leaf);
  return below && (index < split ? nodeHash(below, last) : nodeHash(last, below));
}

/** True when the proof shows that the tree has a leaf with this hash at this index. */
export const verifyInclusion = (
  proof: Hashes,
  index: number,
  leaf: Uint8Array,
  { size, root }: TreeHead,
): boolean =>
  Number.isSafeInteger(size) &&
  Number.isSafeInteger(index) &&
  index >= 0 &&
  index < size &&
  same(rootFrom(proof, { lo: 0, hi: size, index }, leaf), root);

/** Computes the roots of both trees from a proof, over the leaves from `lo` up to before `hi`. */
function rootsFrom(
  proof: Hashes,
  { lo, hi, from }: { lo: number; hi: number; from: number },
  old: Uint8Array,
): { before: Uint8Array; after: Uint8Array } | undefined {
  const last = proof.at(-1);
  const rest = proof.slice(0, -1);
  if (from === hi) {
    if (rest.length > 0 || (lo === 0) !== (last === undefined)) return undefined;
    const whole = last ?? old;
    return { before: whole, after: whole };
  }
  if (!last) return undefined;
  const split = lo + splitOf(hi - lo);
  if (from <= split) {
    const left = rootsFrom(rest, { lo, hi: split, from }, old);
    return left && { before: left.before, after: nodeHash(left.after, last) };
  }
  const right = rootsFrom(rest, { lo: split, hi, from }, old);
  return right && { before: nodeHash(last, right.before), after: nodeHash(last, right.after) };
}

/** True when the proof shows that the tree `to` extends the tree `from`. */
export function verifyConsistency(proof: Hashes, from: TreeHead, to: TreeHead): boolean {
  if (!Number.isSafeInteger(from.size) || !Number.isSafeInteger(to.size)) return false;
  if (from.size < 0 || from.size > to.size) return false;
  if (from.size === 0) return proof.length === 0 && same(from.root, EMPTY_ROOT);
  const roots = rootsFrom(proof, { lo: 0, hi: to.size, from: from.size }, from.root);
  return roots !== undefined && same(roots.before, from.root) && same(roots.after, to.root);
}
