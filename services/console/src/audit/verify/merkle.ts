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

/** The root that an inclusion proof leads to; undefined for one that is too long or too short. */
async function rootFrom(
  leaf: Bytes,
  index: number,
  hashes: readonly Bytes[],
  part: Part,
): Promise<Bytes | undefined> {
  const last = hashes.at(-1);
  if (part.to - part.from === 1) return last ? undefined : leaf;
  const [left, right] = halvesOf(part);
  const isLeft = index < left.to;
  const below = last && (await rootFrom(leaf, index, hashes.slice(0, -1), isLeft ? left : right));
  return below && (isLeft ? parentOf(below, last) : parentOf(last, below));
}

/** Why an event is not in the tree: the root that its proof leads to; undefined for one that is. */
export async function inclusionFault(
  { size, root }: Tree,
  { hash, leaf, hashes }: { hash: string; leaf: number; hashes: readonly Bytes[] },
): Promise<string | undefined> {
  const entry = await digest(Uint8Array.of(0), utf8(`{"hash":"${hash}","index":${leaf}}`));
  const found = leaf < size && (await rootFrom(entry, leaf, hashes, { from: 0, to: size }));
  if (!found) return `no root, by the proof of leaf ${leaf}`;
  return isSame(found, root) ? undefined : `root ${toBase64(found)}, by the proof of leaf ${leaf}`;
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
