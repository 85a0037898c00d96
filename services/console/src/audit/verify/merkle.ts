/** The Merkle tree of RFC 6962 over SHA-256, its proofs, and its tiles (C2SP tlog-tiles). */
import { digest, isSame, toBase64, utf8, type Bytes } from './bytes.ts';
import { Mismatch } from './mismatch.ts';

/** A tree: the number of its leaves, and its root. */
export interface Tree {
  size: number;
  root: Bytes;
}

/** Consecutive leaves, from `from` up to but without `to`. */
interface Part {
  from: number;
  to: number;
}

const parentOf = (left: Bytes, right: Bytes): Promise<Bytes> =>
  digest(Uint8Array.of(1), left, right);

/** The left half has the largest power of two of leaves that is less than all. */
function halvesOf({ from, to }: Part): [Part, Part] {
  let left = 1;
  while (left * 2 < to - from) left *= 2;
  const middle = from + left;
  return [
    { from, to: middle },
    { from: middle, to },
  ];
}

/** The root that an inclusion proof leads to; undefined for one that is too long or too short. */
async function rootFrom(
  leaf: Bytes,
  index: number,
  hashes: readonly Bytes[],
  part: Part,
): Promise<Bytes | undefined> {
  const last = hashes.at(-1);
  if (part.to - part.from === 1) return last ? undefined : leaf;
  const [left, right] = halvesOf(part);
  const isLeft = index < left.to;
  const below = last && (await rootFrom(leaf, index, hashes.slice(0, -1), isLeft ? left : right));
  return below && (isLeft ? parentOf(below, last) : parentOf(last, below));
}

/** Why an event is not in the tree: the root that its proof leads to; undefined for one that is. */
export async function inclusionFault(
  { size, root }: Tree,
  { hash, leaf, hashes }: { hash: string; leaf: number; hashes: readonly Bytes[] },
): Promise<string | undefined> {
  const entry = await digest(Uint8Array.of(0), utf8(`{"hash":"${hash}","index":${leaf}}`));
  const found = leaf < size && (await rootFrom(entry, leaf, hashes, { from: 0, to: size }));
  if (!found) return `no root, by the proof of leaf ${leaf}`;
  return isSame(found, root) ? undefined : `root ${toBase64(found)}, by the proof of leaf ${leaf}`;
}

/** Reads the root of the leaves from `index` × 256^level on, 256^level many. */
export type ReadHash = (level: number, index: number) => Promise<Bytes>;

/** The roots of the leaves of `part`: of those before leaf `size`, and of all, from the same hashes. */
async function rootsOf(part: Part, size: number, read: ReadHash): Promise<[Bytes, Bytes]> {
  const count = part.to - part.from;
  const level = Math.log2(count) / 8;
  const isDivided = part.from < size && size < part.to;
  if (!isDivided && Number.isInteger(level) && part.from % count === 0) {
    const root = await read(level, part.from / count);
    return [root, root];
  }
  const [left, right] = halvesOf(part);
  const [before, after] = await rootsOf(left, size, read);
  const [beforeRight, afterRight] = await rootsOf(right, size, read);
  return [
    size > right.from ? await parentOf(before, beforeRight) : before,
    await parentOf(after, afterRight),
  ];
}

/**
 * Whether `newer` begins with the leaves of `older`: the same hashes of its log, which prove nothing
 * by themselves, have to make up the roots of both.
 */
export async function extendsTree(older: Tree, newer: Tree, read: ReadHash): Promise<boolean> {
  if (older.size > newer.size) return false;
  if (older.size === newer.size) return isSame(older.root, newer.root);
  if (older.size === 0) return isSame(older.root, await digest());
  const [before, after] = await rootsOf({ from: 0, to: newer.size }, older.size, read);
  return isSame(before, older.root) && isSame(after, newer.root);
}

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
