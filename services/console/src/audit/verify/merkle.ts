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

/** The left half has the largest power of two of leaves that is less than all. */
function halvesOf({ from, to }: Part): [Part, Part] {
  let left = 1;
  while (left * 2 < to - from) left *= 2;
  const middle = from + left;
  return [
    { from, to: middle },
    { from: middle, to },
  ];
}

/** Why a leaf is not proven, and what differs. */
export interface InclusionFault {
  reason: string;
  expected: string;
  actual: string;
}

/**
 * Verifies inclusion proofs of a tree, whose hashes begin with the leaf's sibling. A part of the tree
 * that was proven need not be proven again. Returns undefined for a leaf that is in the tree.
 */
export function inclusionVerifier({ size, root }: Tree) {
  const keyOf = ({ from, to }: Part): string => `${from}-${to}`;
  const known = new Map([[keyOf({ from: 0, to: size }), root]]);
  return async (
    leaf: Bytes,
    index: number,
    hashes: readonly Bytes[],
  ): Promise<InclusionFault | undefined> => {
    // From the leaf up: each part on its path, the other part beside it, and which is the left one.
    const path: { part: Part; beside?: Part; isLeft: boolean }[] = [];
    let part: Part = { from: 0, to: size };
    while (part.to - part.from > 1) {
      const [left, right] = halvesOf(part);
      const isLeft = index < left.to;
      path.unshift({ part: isLeft ? left : right, beside: isLeft ? right : left, isLeft });
      part = isLeft ? left : right;
    }
    if (index >= size || hashes.length !== path.length)
      return {
        reason: `its proof is none of leaf ${index}`,
        expected: `${path.length} hashes in a tree of ${size} leaves`,
        actual: `${hashes.length} hashes`,
      };
    const shown: [string, Bytes][] = [];
    let actual = leaf;
    let at = 0;
    for (; at < path.length && !known.has(keyOf(path[at]!.part)); at += 1) {
      const { part: own, beside, isLeft } = path[at]!;
      const sibling = hashes[at]!;
      shown.push([keyOf(own), actual], [keyOf(beside!), sibling]);
      actual = isLeft ? await parentOf(actual, sibling) : await parentOf(sibling, actual);
    }
    const expected = known.get(keyOf(path[at]?.part ?? { from: 0, to: size }))!;
    if (!isSame(actual, expected))
      return {
        reason: `the log has another event at leaf ${index}`,
        expected: `root ${toBase64(expected)}`,
        actual: `root ${toBase64(actual)}`,
      };
    for (const [key, hash] of shown) known.set(key, hash);
    return undefined;
  };
}

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
  const [left, right] = halvesOf(part);
  const isLeft = older.size <= left.to;
  const below = last && (await rootsFrom(rest, isLeft ? left : right, older));
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

/** Reads the root of the leaves from `index` × 256^level on, 256^level many. */
export type ReadHash = (level: number, index: number) => Promise<Bytes>;

async function rootOf(part: Part, read: ReadHash): Promise<Bytes> {
  const count = part.to - part.from;
  const level = Math.log2(count) / 8;
  if (Number.isInteger(level) && part.from % count === 0) return read(level, part.from / count);
  const [left, right] = halvesOf(part);
  return parentOf(await rootOf(left, read), await rootOf(right, read));
}

/** The proof that the leaves of `part` extend its first `size` ones, made of hashes of tiles. */
export async function makeExtensionProof(
  size: number,
  part: Part,
  read: ReadHash,
): Promise<Bytes[]> {
  if (size === 0) return [];
  if (size === part.to) return part.from === 0 ? [] : [await rootOf(part, read)];
  const [left, right] = halvesOf(part);
  const [inside, beside] = size <= left.to ? [left, right] : [right, left];
  return [...(await makeExtensionProof(size, inside, read)), await rootOf(beside, read)];
}
