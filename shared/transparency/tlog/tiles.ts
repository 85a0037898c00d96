/** Tiles and entry bundles of C2SP tlog-tiles: their paths and their bytes. */
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { HASH_BYTES } from './merkle.ts';

/** Hashes of a full tile, entries of a full bundle. */
export const TILE_WIDTH = 256;

const MAX_ENTRY_BYTES = 0xffff;

/** Where a tile is: its level, or `entries` for a bundle, its number there, and how wide it is. */
export interface TilePlace {
  level: number | 'entries';
  index: number;
  /** 1 to 256. */
  width: number;
}

const digits = (value: number): string => String(value).padStart(3, '0');

function numberPath(index: number): string {
  const last = digits(index % 1000);
  const rest = Math.floor(index / 1000);
  return rest === 0 ? last : `${groups(rest)}/${last}`;
}

const groups = (rest: number): string => {
  const last = `x${digits(rest % 1000)}`;
  return rest < 1000 ? last : `${groups(Math.floor(rest / 1000))}/${last}`;
};

/** `tile/<L>/<N>[.p/<W>]`, or `tile/entries/<N>[.p/<W>]`. */
export const tilePath = ({ level, index, width }: TilePlace): string =>
  `tile/${level}/${numberPath(index)}${width === TILE_WIDTH ? '' : `.p/${width}`}`;

const PATH =
  /^tile\/(entries|[0-9]|[1-5][0-9]|6[0-3])\/((?:x[0-9]{3}\/){0,5}[0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/;

/** The place that a path names; undefined for a text that is no path of a tile. */
export function parseTilePath(path: string): TilePlace | undefined {
  const [, level, number, width] = PATH.exec(path) ?? [];
  if (level === undefined || number === undefined) return undefined;
  const place: TilePlace = {
    level: level === 'entries' ? level : Number(level),
    index: Number(number.replaceAll(/[x/]/g, '')),
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
  // Says no to zeros too many, to a width of 256 and more, and to numbers beyond what is exact.
  return Number.isSafeInteger(place.index) && tilePath(place) === path ? place : undefined;
}

/** Hashes of a level of a tree of this size: only those of full tiles below count. */
export const hashesAt = (level: number, size: number): number =>
  Math.floor(size / TILE_WIDTH ** level);

/** How wide a tile of a tree of this size is; 0 where it has none there. */
export const widthAt = (level: number, index: number, size: number): number =>
  Math.max(0, Math.min(TILE_WIDTH, hashesAt(level, size) - index * TILE_WIDTH));

/** The hashes of a tile. Errors: `proof_invalid` where its length is not that of `width` hashes. */
export function hashesOf(tile: Uint8Array, width: number): Uint8Array[] {
  if (tile.length !== width * HASH_BYTES)
    throw proofInvalidError(`A tile has ${tile.length} bytes, and ${width * HASH_BYTES} are due.`);
  return Array.from({ length: width }, (_, at) =>
    tile.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES),
  );
}

/** An entry as it stands in a bundle. Errors: RangeError for one over 65,535 bytes. */
export function encodeEntry(entry: Uint8Array): Buffer {
  if (entry.length > MAX_ENTRY_BYTES)
    throw new RangeError(`an entry of ${entry.length} bytes is larger than a bundle holds`);
  const bytes = Buffer.allocUnsafe(2 + entry.length);
  bytes.writeUInt16BE(entry.length);
  bytes.set(entry, 2);
  return bytes;
}

/** The entries of a bundle. Errors: `proof_invalid` where it is not `width` whole entries. */
export function entriesOf(bundle: Uint8Array, width: number): Uint8Array[] {
  const entries: Uint8Array[] = [];
  const view = new DataView(bundle.buffer, bundle.byteOffset, bundle.byteLength);
  let at = 0;
  while (at + 2 <= bundle.length && entries.length < width) {
    const end = at + 2 + view.getUint16(at);
    if (end > bundle.length) break;
    entries.push(bundle.subarray(at + 2, end));
    at = end;
  }
  if (entries.length !== width || at !== bundle.length)
    throw proofInvalidError(`An entry bundle does not hold exactly ${width} whole entries.`);
  return entries;
}
