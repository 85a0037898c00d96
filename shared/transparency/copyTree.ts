import { proofInvalidError } from '../lib/errors/turnlogError.ts';
import type { Checkpoint } from '../ports/eventStore.ts';
import type { TileFile, TileReader, TileStore, TreeState } from './tileStore.ts';
import { readEntries, readHashes, withEarlierTiles, type Tiles } from './tlog/readTiles.ts';
import { parseCheckpoint } from './tlog/checkpoint.ts';
import { parseNote } from './tlog/note.ts';
import {
  encodeEntry,
  hashesAt,
  parseTilePath,
  TILE_WIDTH,
  tilePath,
  widthAt,
} from './tlog/tiles.ts';

/** Leaves that are stored together; a multiple of the width of a tile. */
const LEAVES_AT_ONCE = 64 * TILE_WIDTH;

/** The tiles of a tree of `to` leaves that one of `from` leaves lacks. */
async function readNewTiles(reader: Tiles, from: number, to: number): Promise<TileFile[]> {
  const files: TileFile[] = [];
  for (let level = 0; hashesAt(level, to) > 0; level += 1) {
    const first = Math.floor(hashesAt(level, from) / TILE_WIDTH);
    for (let index = first; widthAt(level, index, to) > 0; index += 1) {
      const width = widthAt(level, index, to);
      const hashes = await readHashes(reader, { level, index, size: to });
      files.push({ path: tilePath({ level, index, width }), bytes: Buffer.concat(hashes) });
      if (level > 0) continue;
      const entries = await readEntries(reader, index, to);
      const path = tilePath({ level: 'entries', index, width });
      files.push({ path, bytes: Buffer.concat(entries.map(encodeEntry)) });
    }
  }
  return files;
}

/** The starts of the bundles from one size to another; without those that the source has lost. */
async function readBundleStarts(
  reader: TileReader,
  from: number,
  to: number,
): Promise<Map<number, Checkpoint>> {
  const starts = new Map<number, Checkpoint>();
  const first = Math.max(1, Math.ceil(from / TILE_WIDTH));
  for (let bundle = first; bundle * TILE_WIDTH < to; bundle += 1) {
    const before = await reader.beforeBundle(bundle);
    if (before) starts.set(bundle, before);
  }
  return starts;
}

/**
 * The partial tiles at the end of a tree of `size` leaves. Proofs under a checkpoint of that size read
 * them, although wider ones are stored.
 */
async function readLastTiles(reader: Tiles, size: number): Promise<TileFile[]> {
  const last = size - (size % TILE_WIDTH);
  const files = await readNewTiles(reader, last, size);
  return files.filter(({ path }) => parseTilePath(path)!.width < TILE_WIDTH);
}

/** The state after the next step: at the start of a bundle that the source knows, or at the end. */
async function nextState(reader: TileReader, from: number, end: TreeState): Promise<TreeState> {
  for (let size = from - (from % TILE_WIDTH); ;) {
    size += LEAVES_AT_ONCE;
    if (size >= end.size) return end;
    const checkpoint = await reader.beforeBundle(size / TILE_WIDTH);
    if (checkpoint) return { size, checkpoint };
  }
}

interface TreeCopy {
  from: TileReader;
  to: TileStore;
  /** The part to copy of a tree that may grow meanwhile. */
  state: TreeState;
  /** A checkpoint of at most that size. */
  checkpoint: string | undefined;
  /** Stops after a step. */
  signal: AbortSignal;
  onProgress: (leaves: number) => void;
}

/**
 * Copies a tree with its checkpoint, and continues one that was copied in part. Resolves with false if
 * the signal stopped it. Throws `proof_invalid` for a tree whose files are damaged, and
 * `store_unavailable`.
 */
export async function copyTree(copy: TreeCopy): Promise<boolean> {
  const { from: reader, to: store, state, checkpoint, signal, onProgress } = copy;
  const tiles = withEarlierTiles(reader, state.size);
  const signed = checkpoint === undefined ? 0 : parseCheckpoint(parseNote(checkpoint).text).size;
  let { size: from } = await store.state();
  /** Both may need the same tile of a higher level. */
  async function filesOf(size: number): Promise<TileFile[]> {
    const isLast = size === state.size && signed < size;
    const files = [
      ...(isLast ? await readLastTiles(tiles, signed) : []),
      ...(await readNewTiles(tiles, from, size)),
    ];
    return [...new Map(files.map((file) => [file.path, file])).values()];
  }
  if (from > state.size)
    throw proofInvalidError(
      `The copy has ${from} leaves of the transparency log, and the log itself ${state.size}.`,
    );
  while (from < state.size) {
    if (signal.aborted) return false;
    const next = await nextState(reader, from, state);
    await store.grow({
      from,
      files: await filesOf(next.size),
      bundles: await readBundleStarts(reader, from, next.size),
      state: next,
    });
    from = next.size;
    onProgress(from);
  }
  if (checkpoint !== undefined) await store.publish(checkpoint);
  return true;
}
