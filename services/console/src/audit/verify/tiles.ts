/** C2SP tlog-tiles: where a log serves the hashes of its tree. */
import { HASH_LENGTH, type Bytes } from './bytes.ts';
import type { ReadHash } from './merkle.ts';
import { Mismatch } from './mismatch.ts';

const WIDTH = 256;

interface TilePlace {
  level: number | 'entries';
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

/** Fetches a tile, or undefined for one that the log does not have. */
type FetchTile = (path: string) => Promise<Bytes | undefined>;

/** A partial tile, or the full one that replaced it. */
const fetchWide = async (fetchTile: FetchTile, place: TilePlace): Promise<Bytes | undefined> =>
  (await fetchTile(pathOfTile(place))) ?? fetchTile(pathOfTile({ ...place, width: WIDTH }));

const widthOf = (index: number, hashes: number): number => Math.min(WIDTH, hashes - index * WIDTH);

/**
 * The hash of the event that the log of `size` events has at a leaf; undefined where it does not
 * say. The caller has to prove it.
 */
export async function readLeafEvent(
  leaf: number,
  size: number,
  fetchTile: FetchTile,
): Promise<string | undefined> {
  const index = Math.floor(leaf / WIDTH);
  const place = { level: 'entries', index, width: widthOf(index, size) } as const;
  const bundle = await fetchWide(fetchTile, place);
  if (!bundle) return undefined;
  const view = new DataView(bundle.buffer, bundle.byteOffset, bundle.byteLength);
  let at = 0;
  // Each entry follows its length in two bytes.
  for (let skip = leaf % WIDTH; skip > 0 && at + 2 <= bundle.length; skip -= 1)
    at += 2 + view.getUint16(at);
  if (at + 2 > bundle.length) return undefined;
  const entry = String.fromCharCode(...bundle.slice(at + 2, at + 2 + view.getUint16(at)));
  return /^\{"hash":"([0-9a-f]{64})",/.exec(entry)?.[1];
}

/**
 * Reads hashes of a tree of `size` leaves. Each tile is fetched once. The hashes prove nothing by
 * themselves.
 */
export function tileHashes(size: number, fetchTile: FetchTile): ReadHash {
  const fetched = new Map<string, Promise<Bytes | undefined>>();
  const once = (path: string): Promise<Bytes | undefined> => {
    const tile = fetched.get(path) ?? fetchTile(path);
    fetched.set(path, tile);
    return tile;
  };
  return async (level, at) => {
    const index = Math.floor(at / WIDTH);
    const width = widthOf(index, Math.floor(size / WIDTH ** level));
    const tile = await fetchWide(once, { level, index, width });
    const from = (at % WIDTH) * HASH_LENGTH;
    const hash = tile?.slice(from, from + HASH_LENGTH);
    if (hash?.length === HASH_LENGTH) return hash;
    throw new Mismatch(`The log does not serve its tile ${pathOfTile({ level, index, width })}.`, {
      meaning:
        'Without it the browser can’t show that the log extends another checkpoint. The files of the log are incomplete, or it was never that long.',
    });
  };
}
