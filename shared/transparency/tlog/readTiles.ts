import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import type { TileReader } from '../tileStore.ts';
import { entriesOf, hashesOf, TILE_WIDTH, tilePath, widthAt, type TilePlace } from './tiles.ts';

/** What is needed of a reader for hashes and entries. */
export type Tiles = Pick<TileReader, 'read'>;

/** A partial tile may be gone once there is the full one, which begins with the same. */
async function readWide(
  reader: Tiles,
  place: TilePlace,
): Promise<{ bytes: Uint8Array; width: number }> {
  const partial = await reader.read(tilePath(place));
  if (partial) return { bytes: partial, width: place.width };
  const full =
    place.width < TILE_WIDTH
      ? await reader.read(tilePath({ ...place, width: TILE_WIDTH }))
      : undefined;
  if (full) return { bytes: full, width: TILE_WIDTH };
  throw proofInvalidError(
    `The transparency log has no ${tilePath(place)}. Put its files back from a backup.`,
  );
}

/** Says which file it is that is wrong. */
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
 * The hashes of a tile, as far as a tree of `size` leaves has them. Errors: `proof_invalid` where the
 * tile is missing or has another length, those of the reader.
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

/** The entries of a bundle, as far as a tree of `size` leaves has them. Errors: as `readHashes`. */
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

/** A reader that keeps what it has read, for as long as one proof is made. */
export function remembering(reader: Tiles): Tiles {
  const known = new Map<string, Promise<Uint8Array | undefined>>();
  return {
    read(path) {
      const before = known.get(path) ?? reader.read(path);
      known.set(path, before);
      return before;
    },
  };
}
