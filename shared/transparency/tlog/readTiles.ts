import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import type { TileReader } from '../tileStore.ts';
import { HASH_BYTES } from './merkle.ts';
import {
  entriesOf,
  hashesOf,
  parseTilePath,
  TILE_WIDTH,
  tilePath,
  widthAt,
  type TilePlace,
} from './tiles.ts';

/** The part of a reader that provides hashes and entries. */
export type Tiles = Pick<TileReader, 'read'>;

/** Reads a tile, or the full tile that begins with it: partial tiles are deleted once it exists. */
async function readWide(
  reader: Tiles,
  tile: TilePlace,
): Promise<{ bytes: Uint8Array; width: number }> {
  const partial = await reader.read(tilePath(tile));
  if (partial) return { bytes: partial, width: tile.width };
  const full =
    tile.width < TILE_WIDTH
      ? await reader.read(tilePath({ ...tile, width: TILE_WIDTH }))
      : undefined;
  if (full) return { bytes: full, width: TILE_WIDTH };
  throw proofInvalidError(
    `The transparency log has no ${tilePath(tile)}. Put its files back from a backup.`,
  );
}

/** Adds the path of the damaged file to the error. */
function named<Result>(path: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw proofInvalidError(
      `${path} of the transparency log is damaged: ${(error as Error).message} Put it back from a backup.`,
      error,
    );
  }
}

/**
 * The hashes of a tile that belong to a tree of `size` leaves. Throws `proof_invalid` when the tile
 * is missing or has the wrong length.
 */
export async function readHashes(
  reader: Tiles,
  { level, index, size }: { level: number; index: number; size: number },
): Promise<readonly Uint8Array[]> {
  const width = widthAt(level, index, size);
  const tile = await readWide(reader, { level, index, width });
  return named(tilePath({ level, index, width: tile.width }), () =>
    hashesOf(tile.bytes, tile.width).slice(0, width),
  );
}

/** The entries of a bundle that belong to a tree of `size` leaves. Throws like `readHashes`. */
export async function readEntries(
  reader: Tiles,
  index: number,
  size: number,
): Promise<Uint8Array[]> {
  const width = widthAt(0, index, size);
  const bundle = await readWide(reader, { level: 'entries', index, width });
  return named(tilePath({ level: 'entries', index, width: bundle.width }), () =>
    entriesOf(bundle.bytes, bundle.width).slice(0, width),
  );
}

/**
 * The bytes of a bundle, or of the full one that begins with it. Throws `proof_invalid` when it is
 * missing.
 */
export async function readBundleBytes(reader: Tiles, index: number, size: number): Promise<Buffer> {
  const width = widthAt(0, index, size);
  const { bytes } = await readWide(reader, { level: 'entries', index, width });
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * Reads tiles of hashes of earlier sizes from those of a tree of `size` leaves, which begin with them:
 * the tree may have been made in other steps, and partial tiles may be deleted.
 */
export const withEarlierTiles = (reader: Tiles, size: number): Tiles => ({
  async read(path) {
    const bytes = await reader.read(path);
    const tile = parseTilePath(path);
    if (bytes || !tile || tile.level === 'entries') return bytes;
    const width = widthAt(tile.level, tile.index, size);
    if (width <= tile.width) return undefined;
    const wider = await reader.read(tilePath({ ...tile, width }));
    return wider?.subarray(0, tile.width * HASH_BYTES);
  },
});

/** A caching reader, for the duration of one proof. */
export function cacheTiles(reader: Tiles): Tiles {
  const reads = new Map<string, Promise<Uint8Array | undefined>>();
  return {
    read(path) {
      const bytes = reads.get(path) ?? reader.read(path);
      reads.set(path, bytes);
      return bytes;
    },
  };
}
