/** C2SP tlog-tiles: where a log serves the hashes of its tree. */
import type { Bytes } from './bytes.ts';
import type { ReadHash } from './merkle.ts';
import { Mismatch } from './mismatch.ts';

const WIDTH = 256;
const HASH_BYTES = 32;

/** The path of a tile: `tile/<level>/<index in groups of three digits>[.p/<width>]`. */
export function pathOfTile(level: number, index: number, width = WIDTH): string {
  const groups = [String(index % 1_000).padStart(3, '0')];
  for (let rest = Math.floor(index / 1_000); rest > 0; rest = Math.floor(rest / 1_000))
    groups.unshift(`x${String(rest % 1_000).padStart(3, '0')}`);
  return `tile/${level}/${groups.join('/')}${width === WIDTH ? '' : `.p/${width}`}`;
}

/**
 * Reads hashes of a tree of `size` leaves. `fetchTile` returns undefined for a tile that the log does
 * not have. The hashes prove nothing by themselves.
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
    const path = pathOfTile(level, index, width);
    // A partial tile is removed once the full one exists.
    const tile = (await once(path)) ?? (await once(pathOfTile(level, index)));
    const from = (at % WIDTH) * HASH_BYTES;
    const hash = tile?.slice(from, from + HASH_BYTES);
    if (hash?.length === HASH_BYTES) return hash;
    throw new Mismatch(`The log does not serve its ${path}.`, {
      meaning: 'The files of the log are incomplete, or it was never that long.',
    });
  };
}
