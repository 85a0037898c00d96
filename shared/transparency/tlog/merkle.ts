/** The Merkle tree of RFC 6962 §2.1 over SHA-256. */
import { hash as digest } from 'node:crypto';

/** Size of a hash in bytes. */
export const HASH_BYTES = 32;

/** Input buffer shared by all interior nodes: a tree has as many of them as leaves. */
const node = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

/** Hashes to a string first, which takes a third of the time of hashing to a new buffer. */
const sha256 = (bytes: Uint8Array): Buffer =>
  Buffer.from(digest('sha256', bytes, 'binary'), 'binary');

/** The root of an empty tree. */
export const EMPTY_ROOT: Buffer = sha256(Buffer.alloc(0));

/** The hash of the leaf that contains this entry. */
export function leafHash(entry: Uint8Array): Buffer {
  const leaf = Buffer.allocUnsafe(1 + entry.length);
  leaf[0] = 0;
  leaf.set(entry, 1);
  return sha256(leaf);
}

/** The hash of the parent of two nodes. */
export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  node.set(left, 1);
  node.set(right, 1 + HASH_BYTES);
  return sha256(node);
}

/** The split point of a tree: the largest power of two below `count`, which is at least 2. */
export function splitOf(count: number): number {
  let split = 1;
  while (split * 2 < count) split *= 2;
  return split;
}

/** The hashes of the parents of consecutive nodes, as far as both children are there. */
export const parentsOf = (row: readonly Uint8Array[]): Uint8Array[] =>
  Array.from({ length: Math.floor(row.length / 2) }, (_, at) =>
    nodeHash(row[2 * at]!, row[2 * at + 1]!),
  );

/** The root of consecutive nodes of equal height, whose number is a power of two. */
export function rootOfFull(hashes: readonly Uint8Array[]): Uint8Array {
  let row = hashes;
  while (row.length > 1) row = parentsOf(row);
  return row[0]!;
}
