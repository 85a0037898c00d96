/** Appends to a tree of which only the right edge is held in memory. */
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import type { TileFile } from '../tileStore.ts';
import { EMPTY_ROOT, leafHash, nodeHash, rootOfFull } from './merkle.ts';
import { readEntries, readHashes, type Tiles } from './readTiles.ts';
import { encodeEntry, hashesAt, TILE_WIDTH, tilePath, type TilePlace } from './tiles.ts';

export interface RightEdge {
  /** Number of leaves. */
  size(): number;
  append(entry: Uint8Array): void;
  /** The root of the current tree. */
  root(): Buffer;
  /**
   * Returns tiles and bundles that are new or wider since the last call. Releases the full ones.
   */
  takeFiles(): TileFile[];
}

const fileOf = (
  level: TilePlace['level'],
  index: number,
  parts: readonly Uint8Array[],
): TileFile => ({
  path: tilePath({ level, index, width: parts.length }),
  bytes: Buffer.concat(parts),
});

/** The root of a tree whose levels end in these partial tiles, lowest level first. */
function rootOfEdge(levels: readonly (readonly Uint8Array[])[]): Buffer {
  let root: Uint8Array | undefined;
  for (const hashes of levels) {
    // Perfect subtrees from the right: their widths are the set bits in the number of hashes.
    let end = hashes.length;
    for (let width = 1; width <= hashes.length; width *= 2) {
      if (Math.floor(hashes.length / width) % 2 === 0) continue;
      const left = rootOfFull(hashes.slice(end - width, end));
      root = root ? nodeHash(left, root) : left;
      end -= width;
    }
  }
  return root ? Buffer.from(root) : EMPTY_ROOT;
}

/**
 * Opens the right edge of the first `size` leaves of a stored tree, which has `storedSize` leaves.
 * Reads nothing for an empty tree. Throws `proof_invalid` when tiles are missing, have the wrong
 * length, or do not match their entries.
 */
export async function openRightEdge(
  reader: Tiles,
  size: number,
  storedSize = size,
): Promise<RightEdge> {
  /** For each level, the hashes of its last tile while that tile is partial. */
  const levels: Uint8Array[][] = [];
  for (let level = 0; hashesAt(level, size) > 0; level += 1)
    levels.push(await partialHashes({ reader, size, kept: storedSize }, level));
  let entries = await partialEntries({ reader, size, kept: storedSize }, levels[0] ?? []);
  let count = size;
  let files: TileFile[] = [];
  /** For each level, the width of the partial tile at the last call of `takeFiles`. */
  let takenWidths = levels.map(({ length }) => length);

  function push(level: number, hash: Uint8Array): void {
    const hashes = (levels[level] ??= []);
    hashes.push(hash);
    if (hashes.length < TILE_WIDTH) return;
    const index = hashesAt(level + 1, count) - 1;
    files.push(fileOf(level, index, hashes));
    levels[level] = [];
    takenWidths[level] = 0;
    push(level + 1, rootOfFull(hashes));
  }

  /** The partial files that are wider than at the last call of `takeFiles`. */
  function partialFiles(): TileFile[] {
    const partial = levels.flatMap((hashes, level) =>
      hashes.length === (takenWidths[level] ?? 0)
        ? []
        : fileOf(level, hashesAt(level + 1, count), hashes),
    );
    if (entries.length > 0 && entries.length !== (takenWidths[0] ?? 0))
      partial.push(fileOf('entries', hashesAt(1, count), entries));
    return partial;
  }

  return {
    size: () => count,
    append(entry) {
      count += 1;
      entries.push(encodeEntry(entry));
      if (entries.length === TILE_WIDTH) {
        files.push(fileOf('entries', hashesAt(1, count) - 1, entries));
        entries = [];
      }
      push(0, leafHash(entry));
    },
    root: () => rootOfEdge(levels),
    takeFiles() {
      const all = [...files, ...partialFiles()];
      files = [];
      takenWidths = levels.map(({ length }) => length);
      return all;
    },
  };
}

/** The first `size` leaves of a stored tree of `kept` leaves. */
interface Beginning {
  reader: Tiles;
  size: number;
  kept: number;
}

/** The hashes of the last tile of a level; empty when that tile is full. */
async function partialHashes(
  { reader, size, kept: storedSize }: Beginning,
  level: number,
): Promise<Uint8Array[]> {
  const width = hashesAt(level, size) % TILE_WIDTH;
  if (width === 0) return [];
  const hashes = await readHashes(reader, {
    level,
    index: hashesAt(level + 1, size),
    size: storedSize,
  });
  return hashes.slice(0, width);
}

/** Checks entries against their hashes: a mismatch would become permanent in the full bundle. */
async function partialEntries(
  { reader, size, kept: storedSize }: Beginning,
  hashes: readonly Uint8Array[],
): Promise<Buffer[]> {
  if (size % TILE_WIDTH === 0) return [];
  const all = await readEntries(reader, hashesAt(1, size), storedSize);
  const entries = all.slice(0, size % TILE_WIDTH);
  const mismatch = entries.findIndex((entry, at) => leafHash(entry).compare(hashes[at]!) !== 0);
  if (mismatch >= 0)
    throw proofInvalidError(
      `Entry ${size - entries.length + mismatch} of the transparency log has not the hash that is kept of it. Put its files back from a backup.`,
    );
  return entries.map(encodeEntry);
}
