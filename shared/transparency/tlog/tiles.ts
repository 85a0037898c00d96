/** Tiles and entry bundles of C2SP tlog-tiles: their paths and their encoding. */
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { HASH_BYTES } from './merkle.ts';

/** Hashes in a full tile, or entries in a full bundle. */
export const TILE_WIDTH = 256;

const MAX_ENTRY_BYTES = 0xffff;

/** Identifies a tile by level (`entries` for a bundle), index within the level, and width. */
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

/** Parses the path of a tile; undefined for any other text. */
export function parseTilePath(path: string): TilePlace | undefined {
  const [, level, number, width] = PATH.exec(path) ?? [];
  if (level === undefined || number === undefined) return undefined;
  const tile: TilePlace = {
    level: level === 'entries' ? level : Number(level),
    index: Number(number.replaceAll(/[x/]/g, '')),
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
  // Rejects extra leading zeros, an explicit width of 256 or more, and unsafe integers.
  return Number.isSafeInteger(tile.index) && tilePath(tile) === path ? tile : undefined;
}

/** The number of hashes at a level: each one stands for a full tile of the level below. */
export const hashesAt = (level: number, size: number): number =>
  Math.floor(size / TILE_WIDTH ** level);

/** The width of a tile in a tree of this size; 0 when the tree has no such tile. */
export const widthAt = (level: number, index: number, size: number): number =>
  Math.max(0, Math.min(TILE_WIDTH, hashesAt(level, size) - index * TILE_WIDTH));

/** Splits a tile into hashes. Throws `proof_invalid` when it does not hold `width` hashes. */
export function hashesOf(tile: Uint8Array, width: number): Uint8Array[] {
  if (tile.length !== width * HASH_BYTES)
    throw proofInvalidError(`A tile has ${tile.length} bytes, and ${width * HASH_BYTES} are due.`);
  return Array.from({ length: width }, (_, at) =>
    tile.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES),
  );
}

/** Encodes an entry for a bundle. Throws RangeError when it is larger than 65,535 bytes. */
export function encodeEntry(entry: Uint8Array): Buffer {
  if (entry.length > MAX_ENTRY_BYTES)
    throw new RangeError(`an entry of ${entry.length} bytes is larger than a bundle holds`);
  const bytes = Buffer.allocUnsafe(2 + entry.length);
  bytes.writeUInt16BE(entry.length);
  bytes.set(entry, 2);
  return bytes;
}

/** Splits a bundle into entries. Throws `proof_invalid` when it does not hold `width` entries. */
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
