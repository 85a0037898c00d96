/** The Merkle tree of RFC 6962 over SHA-256, and its proofs. */
import { digest, isSame, toBase64, utf8, type Bytes } from './bytes.ts';

/** A tree: the number of its leaves, and its root. */
export interface Tree {
  size: number;
  root: Bytes;
}

/** Consecutive leaves, from `from` up to but without `to`. */
interface Part {
  from: number;
  to: number;
}

/** The hash of the leaf of an event (`eventHash` in hex) at a place in the log. */
export const hashOfLeaf = (eventHash: string, index: number): Promise<Bytes> =>
  digest(Uint8Array.of(0), utf8(`{"hash":"${eventHash}","index":${index}}`));

const parentOf = (left: Bytes, right: Bytes): Promise<Bytes> =>
  digest(Uint8Array.of(1), left, right);

/** Where a tree of `count` ≥ 2 leaves divides: the largest power of two below `count`. */
function leftCount(count: number): number {
  let left = 1;
  while (left * 2 < count) left *= 2;
  return left;
}

const halvesOf = ({ from, to }: Part): [Part, Part] => {
  const middle = from + leftCount(to - from);
  return [
    { from, to: middle },
    { from: middle, to },
  ];
};

/** The sides of the path from a part down to a leaf: true where it goes left. */
function pathTo(part: Part, index: number): { part: Part; isLeft: boolean }[] {
  const path = [];
  for (let rest = part; rest.to - rest.from > 1;) {
    const [left, right] = halvesOf(rest);
    const isLeft = index < left.to;
    path.push({ part: rest, isLeft });
    rest = isLeft ? left : right;
  }
  return path;
}

/** Why a leaf is not proven, and what differs. */
export interface InclusionFault {
  reason: string;
  expected: string;
  actual: string;
}

/**
 * Verifies inclusion proofs of a tree, in increasing order of the leaves. A path shows the roots of
 * the parts on its right, so the proof of a later leaf needs to lead only up to the part that holds
 * it. Bundles have only those hashes; with `isWhole` the proofs have all of them. Keeps one root per
 * level.
 */
export function inclusionVerifier({ size, root }: Tree, isWhole: boolean) {
  const parts: (Part & { root: Bytes })[] = [{ from: 0, to: size, root }];
  /** Returns undefined when the leaf is in the tree. `hashes` begin with the leaf's sibling. */
  return async (
    leaf: Bytes,
    index: number,
    hashes: readonly Bytes[],
  ): Promise<InclusionFault | undefined> => {
    while (parts.length > 0 && parts.at(-1)!.to <= index) parts.pop();
    const part = parts.at(-1);
    if (!part || index < part.from)
      return {
        reason: `leaf ${index} is outside the tree, or not after the leaf of the event before it`,
        expected: `a leaf below ${size}`,
        actual: `leaf ${index}`,
      };
    const path = pathTo(part, index).toReversed();
    const due = isWhole ? proofLength(index, size) : path.length;
    if (hashes.length !== due)
      return {
        reason: `its inclusion proof is none of leaf ${index}`,
        expected: `${due} hashes`,
        actual: `${hashes.length} hashes`,
      };
    let actual = leaf;
    for (const [at, { isLeft }] of path.entries()) {
      const sibling = hashes[at]!;
      actual = isLeft ? await parentOf(actual, sibling) : await parentOf(sibling, actual);
    }
    if (!isSame(actual, part.root))
      return {
        reason: `the tree has another leaf ${index}`,
        expected: `root ${toBase64(part.root)}`,
        actual: `root ${toBase64(actual)}`,
      };
    parts.pop();
    for (let at = path.length - 1; at >= 0; at -= 1)
      if (path[at]!.isLeft) parts.push({ ...halvesOf(path[at]!.part)[1], root: hashes[at]! });
    return undefined;
  };
}

/** The number of hashes that prove a leaf in a tree of this size. */
const proofLength = (index: number, size: number): number =>
  pathTo({ from: 0, to: size }, index).length;

async function rootsFrom(
  proof: readonly Bytes[],
  part: Part,
  older: Tree,
): Promise<{ before: Bytes; after: Bytes } | undefined> {
  const last = proof.at(-1);
  const rest = proof.slice(0, -1);
  if (older.size === part.to) {
    if (rest.length > 0 || (part.from === 0) !== (last === undefined)) return undefined;
    return { before: last ?? older.root, after: last ?? older.root };
  }
  if (!last) return undefined;
  const [left, right] = halvesOf(part);
  const isLeft = older.size <= left.to;
  const below = await rootsFrom(rest, isLeft ? left : right, older);
  if (!below) return undefined;
  if (isLeft) return { before: below.before, after: await parentOf(below.after, last) };
  return { before: await parentOf(last, below.before), after: await parentOf(last, below.after) };
}

/** True when the proof (RFC 6962 §2.1.2) shows that `newer` begins with the leaves of `older`. */
export async function provesExtension(
  proof: readonly Bytes[],
  older: Tree,
  newer: Tree,
): Promise<boolean> {
  if (older.size > newer.size) return false;
  if (older.size === 0) return proof.length === 0 && isSame(older.root, await digest());
  const roots = await rootsFrom(proof, { from: 0, to: newer.size }, older);
  return roots !== undefined && isSame(roots.before, older.root) && isSame(roots.after, newer.root);
}

/** Reads hashes of complete subtrees: of the leaves from `index` × 256^level on, 256^level many. */
export type ReadHash = (level: number, index: number) => Promise<Bytes>;

const TILE_BITS = 8;

/** The root of leaves, from the hashes that tiles have. */
async function rootOf(part: Part, read: ReadHash): Promise<Bytes> {
  const count = part.to - part.from;
  const bits = Math.log2(count);
  if (bits % TILE_BITS === 0 && part.from % count === 0)
    return read(bits / TILE_BITS, part.from / count);
  const [left, right] = halvesOf(part);
  return parentOf(await rootOf(left, read), await rootOf(right, read));
}

async function extensionOf(size: number, part: Part, read: ReadHash): Promise<Bytes[]> {
  if (size === part.to) return part.from === 0 ? [] : [await rootOf(part, read)];
  const [left, right] = halvesOf(part);
  return size <= left.to
    ? [...(await extensionOf(size, left, read)), await rootOf(right, read)]
    : [...(await extensionOf(size, right, read)), await rootOf(left, read)];
}

/** The proof that a tree of `to` leaves extends that of `from` leaves, made of hashes of tiles. */
export const makeExtensionProof = async (
  from: number,
  to: number,
  read: ReadHash,
): Promise<Bytes[]> => (from === 0 ? [] : extensionOf(from, { from: 0, to }, read));
