/** Proofs of RFC 6962 §2.1.1 and §2.1.2, computed from the tiles of a tree. */
import { EMPTY_ROOT, nodeHash, parentsOf, splitOf } from './merkle.ts';
import { readHashes, type Tiles } from './readTiles.ts';
import { subtreesAfter, takeSubtree, type Subtree } from './subtrees.ts';
import { TILE_WIDTH } from './tiles.ts';

const TILE_HEIGHT = 8;

/** Returns the root of a perfect subtree, by its first leaf and its height. */
type Roots = (lo: number, height: number) => Promise<Uint8Array>;

/** The hashes of a tile, and above them those of the perfect subtrees in it, row by row. */
interface TileRows {
  index: number;
  rows: (readonly Uint8Array[])[];
}

/**
 * Creates a reader of the roots in a tree of `size` leaves. It keeps the last two tiles of each level,
 * that of a leaf and that at the right edge, whose inner hashes cost the proofs of all leaves in a tile
 * no more than that of one.
 */
function createRoots(tiles: Tiles, size: number): Roots {
  const rowsByLevel = new Map<number, TileRows[]>();

  async function rowsOf(level: number, index: number): Promise<TileRows['rows']> {
    const [last, other] = rowsByLevel.get(level) ?? [];
    if (last?.index === index) return last.rows;
    const tileRows =
      other?.index === index
        ? other
        : { index, rows: [await readHashes(tiles, { level, index, size })] };
    rowsByLevel.set(level, last ? [tileRows, last] : [tileRows]);
    return tileRows.rows;
  }

  return async (lo, height) => {
    const level = Math.floor(height / TILE_HEIGHT);
    const first = lo / TILE_WIDTH ** level;
    const rows = await rowsOf(level, Math.floor(first / TILE_WIDTH));
    const above = height % TILE_HEIGHT;
    while (rows.length <= above) rows.push(parentsOf(rows.at(-1)!));
    return rows[above]![(first % TILE_WIDTH) / 2 ** above]!;
  };
}

/** The leaves from `lo` up to but excluding `hi`, in a tree with these roots. */
interface Range {
  roots: Roots;
  lo: number;
  hi: number;
}

/** The root of a perfect subtree, whose hashes lie in one tile. */
const perfectRoot = ({ roots, lo, hi }: Range): Promise<Uint8Array> =>
  roots(lo, Math.round(Math.log2(hi - lo)));

/** The root of a range that starts at a subtree boundary. */
async function rootOf(range: Range): Promise<Uint8Array> {
  const { lo, hi } = range;
  const count = hi - lo;
  if (count === 1 || splitOf(count) * 2 === count) return perfectRoot(range);
  const split = lo + splitOf(count);
  const left = await perfectRoot({ ...range, hi: split });
  return nodeHash(left, await rootOf({ ...range, lo: split }));
}

/**
 * The root of the first `size` leaves. Throws `proof_invalid` when tiles are missing or have the
 * wrong length.
 */
export const rootAt = async (reader: Tiles, size: number): Promise<Uint8Array> =>
  size === 0 ? EMPTY_ROOT : rootOf({ roots: createRoots(reader, size), lo: 0, hi: size });

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
 * Returns a function for the hashes from a leaf's sibling to the child of the root, for a tree of
 * `size` leaves. It does not check the tiles: `verifyInclusion` must check the result. Throws
 * RangeError for an index outside the tree.
 */
export function createPathReader(
  reader: Tiles,
  size: number,
): (index: number) => Promise<Uint8Array[]> {
  const roots = createRoots(reader, size);
  return async (index) => {
    if (!(index >= 0 && index < size))
      throw new RangeError(`a tree of ${size} leaves has no leaf ${index}`);
    return path({ roots, lo: 0, hi: size }, index);
  };
}

/** The hashes of one leaf. */
export const inclusionProof = (reader: Tiles, index: number, size: number): Promise<Uint8Array[]> =>
  createPathReader(reader, size)(index);

/**
 * Returns a function that proves leaves of a tree of `size` leaves one after the other, in
 * increasing order. Each proof has only the hashes up to the root of the smallest subtree that the
 * proofs before it have shown, as `createInclusionChecker` expects. It throws RangeError for a leaf
 * that is not after the one before, or outside the tree.
 */
export function createInclusionProver(
  tiles: Tiles,
  size: number,
): (index: number) => Promise<Uint8Array[]> {
  const roots = createRoots(tiles, size);
  const shown: Subtree[] = [{ lo: 0, hi: size }];
  return async (index) => {
    const subtree = takeSubtree(shown, index);
    if (!subtree) throw new RangeError(`leaf ${index} is not after the leaf before it`);
    shown.push(...subtreesAfter(subtree, index));
    return path({ roots, ...subtree }, index);
  };
}

async function subproof(range: Range, from: number): Promise<Uint8Array[]> {
  const { lo, hi } = range;
  // The verifier has the root of the older tree: a range shared by both trees is omitted when it is
  // that whole tree, and needed when it is only a part of it.
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
 * The hashes that prove that the tree of `to` leaves extends the tree of `from` leaves; empty when
 * `from` is 0 or equals `to`. Throws RangeError when `from` is larger than `to`.
 */
export async function consistencyProof(
  reader: Tiles,
  from: number,
  to: number,
): Promise<Uint8Array[]> {
  if (!(from >= 0 && from <= to))
    throw new RangeError(`a tree of ${to} leaves can't begin with one of ${from}`);
  if (from === 0) return [];
  return subproof({ roots: createRoots(reader, to), lo: 0, hi: to }, from);
}
