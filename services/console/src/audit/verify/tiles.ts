/** C2SP tlog-tiles: where a log serves the hashes of its tree. */
import { HASH_LENGTH, type Bytes } from './bytes.ts';
import type { ReadHash } from './merkle.ts';
import { Mismatch } from './mismatch.ts';

const WIDTH = 256;

interface TilePlace {
  level: number;
  index: number;
  /** Hashes in the tile, 1 to 256. */
  width: number;
}

/** The path of a tile: `tile/<level>/<index in groups of three digits>[.p/<width>]`. */
export function pathOfTile({ level, index, width }: TilePlace): string {
  const groups = [String(index % 1_000).padStart(3, '0')];
  for (let rest = Math.floor(index / 1_000); rest > 0; rest = Math.floor(rest / 1_000))
    groups.unshift(`x${String(rest % 1_000).padStart(3, '0')}`);
  return `tile/${level}/${groups.join('/')}${width === WIDTH ? '' : `.p/${width}`}`;
}

/**
 * Reads hashes of a tree of `size` leaves. `fetchTile` returns undefined for a tile that the log does
 * not have. Each tile is fetched once. The hashes prove nothing by themselves.
 */
export function tileHashes(
  size: number,
  fetchTile: (path: string) => Promise<Bytes | undefined>,
): ReadHash {
  const fetched = new Map<string, Promise<Bytes | undefined>>();
  const once = (path: string): Promise<Bytes | undefined> => {
    const tile = fetched.get(path) ?? fetchTile(path);
    fetched.set(path, tile);
    return tile;
  };
  return async (level, at) => {
    const index = Math.floor(at / WIDTH);
    const width = Math.min(WIDTH, Math.floor(size / WIDTH ** level) - index * WIDTH);
    const partial = await once(pathOfTile({ level, index, width }));
    // A partial tile is removed once the full one exists.
    const tile = partial ?? (await once(pathOfTile({ level, index, width: WIDTH })));
    const from = (at % WIDTH) * HASH_LENGTH;
    const hash = tile?.slice(from, from + HASH_LENGTH);
    if (hash?.length === HASH_LENGTH) return hash;
    throw new Mismatch(`The log does not serve its tile ${pathOfTile({ level, index, width })}.`, {
      meaning:
        'Without it the browser can’t show that the log extends another checkpoint. The files of the log are incomplete, or it was never that long.',
    });
  };
}
