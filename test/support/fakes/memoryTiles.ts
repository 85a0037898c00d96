import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import type { TileFile, TileReader } from '../../../shared/transparency/tileStore.ts';
import { openRightEdge, type RightEdge } from '../../../shared/transparency/tlog/rightEdge.ts';
import { HASH_BYTES } from '../../../shared/transparency/tlog/merkle.ts';
import {
  encodeEntry,
  entriesOf,
  parseTilePath,
  TILE_WIDTH,
  tilePath,
} from '../../../shared/transparency/tlog/tiles.ts';

/** Tiles in memory. A narrower tile than was written is answered from a wider one. */
export interface MemoryTiles extends Pick<TileReader, 'read' | 'beforeBundle'> {
  files: Map<string, Uint8Array>;
  bundles: Map<number, Checkpoint>;
  write(files: readonly TileFile[]): void;
}

/** As a store has it that was written at each size. */
function cutFromWider(
  files: ReadonlyMap<string, Uint8Array>,
  path: string,
): Uint8Array | undefined {
  const place = parseTilePath(path);
  if (!place) return undefined;
  for (let width = place.width + 1; width <= TILE_WIDTH; width += 1) {
    const wider = files.get(tilePath({ ...place, width }));
    if (!wider) continue;
    if (place.level !== 'entries') return wider.subarray(0, place.width * HASH_BYTES);
    return Buffer.concat(entriesOf(wider, width).slice(0, place.width).map(encodeEntry));
  }
  return undefined;
}

export function memoryTiles(): MemoryTiles {
  const files = new Map<string, Uint8Array>();
  const bundles = new Map<number, Checkpoint>();
  return {
    files,
    bundles,
    beforeBundle: async (bundle) => bundles.get(bundle),
    read: async (path) => files.get(path) ?? cutFromWider(files, path),
    write: (written) => written.forEach(({ path, bytes }) => files.set(path, bytes)),
  };
}

/** The entries of a tree whose leaves say nothing but their number, as Go's vectors have them. */
export const entryOf = (index: number): Buffer => Buffer.from(`entry ${index}`);

/** A tree of `size` such leaves, written after each of the sizes in between. */
export async function treeOf(
  size: number,
  writtenAt: readonly number[] = [],
): Promise<{ tiles: MemoryTiles; edge: RightEdge }> {
  const tiles = memoryTiles();
  const edge = await openRightEdge(tiles, 0);
  for (let index = 0; index < size; index += 1) {
    edge.append(entryOf(index));
    if (writtenAt.includes(index + 1)) tiles.write(edge.takeFiles());
  }
  tiles.write(edge.takeFiles());
  return { tiles, edge };
}
