/** Proofs of RFC 6962 §2.1.1 and §2.1.2, made from the tiles of a tree. */
import { EMPTY_ROOT, nodeHash, rootOfFull, splitOf } from './merkle.ts';
import { readHashes, remembering, type Tiles } from './readTiles.ts';
import { TILE_WIDTH } from './tiles.ts';

const TILE_HEIGHT = 8;

/** A range of leaves, from `lo` to before `hi`, of the tree of `size` leaves that a reader has. */
interface Range {
  tiles: Tiles;
  size: number;
  lo: number;
  hi: number;
}

/** The root above a perfect subtree, whose hashes stand in one tile. */
async function perfectRoot({ tiles, size, lo, hi }: Range): Promise<Uint8Array> {
  const height = Math.round(Math.log2(hi - lo));
  const level = Math.floor(height / TILE_HEIGHT);
  const first = lo / TILE_WIDTH ** level;
  const hashes = await readHashes(tiles, { level, index: Math.floor(first / TILE_WIDTH), size });
  const from = first % TILE_WIDTH;
  return rootOfFull(hashes.slice(from, from + 2 ** (height % TILE_HEIGHT)));
}

/** The root above a range that begins where a subtree begins. */
async function rootOf(range: Range): Promise<Uint8Array> {
  const { lo, hi } = range;
  const count = hi - lo;
  if (count === 1 || splitOf(count) * 2 === count) return perfectRoot(range);
  const split = lo + splitOf(count);
  const left = await perfectRoot({ ...range, hi: split });
  return nodeHash(left, await rootOf({ ...range, lo: split }));
}

/**
 * The root of the tree's first `size` leaves. Errors: `proof_invalid` where tiles are missing or have
 * other lengths, those of the reader.
 */
export const rootAt = async (reader: Tiles, size: number): Promise<Uint8Array> =>
  size === 0 ? EMPTY_ROOT : rootOf({ tiles: remembering(reader), size, lo: 0, hi: size });

async function path(range: Range, index: number): Promise<Uint8Array[]> {
  const { lo, hi } = range;
  if (hi - lo === 1) return [];
  const split = lo + splitOf(hi - lo);
  const [left, right] = [
    { ...range, hi: split },
    { ...range, lo: split },
  ];
  return index < split
    ? [...(await path(left, index)), await rootOf(right)]
    : [...(await path(right, index)), await rootOf(left)];
}

/**
 * The hashes from the leaf's sibling up to the child of the root of the tree of `size` leaves.
 * Errors: RangeError for a leaf that such a tree does not have, and those of `rootAt`. That the
 * tiles are right is for `verifyInclusion` to say.
 */
export async function inclusionProof(
  reader: Tiles,
  index: number,
  size: number,
): Promise<Uint8Array[]> {
  if (!(index >= 0 && index < size))
    throw new RangeError(`a tree of ${size} leaves has no leaf ${index}`);
  return path({ tiles: remembering(reader), size, lo: 0, hi: size }, index);
}

async function subproof(range: Range, from: number): Promise<Uint8Array[]> {
  const { lo, hi } = range;
  // What both trees have whole is known to who has the older root, unless it is only part of that.
  if (from === hi) return lo === 0 ? [] : [await rootOf(range)];
  const split = lo + splitOf(hi - lo);
  const [left, right] = [
    { ...range, hi: split },
    { ...range, lo: split },
  ];
  return from <= split
    ? [...(await subproof(left, from)), await rootOf(right)]
    : [...(await subproof(right, from)), await rootOf(left)];
}

/**
 * The hashes that show that the tree of `to` leaves begins with the one of `from` leaves; none where
 * that is empty or the same. Errors: RangeError for a tree that is larger than the other, and those
 * of `rootAt`.
 */
export async function consistencyProof(
  reader: Tiles,
  from: number,
  to: number,
): Promise<Uint8Array[]> {
  if (!(from >= 0 && from <= to))
    throw new RangeError(`a tree of ${to} leaves can't begin with one of ${from}`);
  if (from === 0) return [];
  return subproof({ tiles: remembering(reader), size: to, lo: 0, hi: to }, from);
}
