/** The leaves of a log's tree: one per event, in log order, without personal data. */
import { isHash } from '../../eventlog/plainJson.ts';
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import type { Position } from '../../ports/eventStore.ts';
import type { TileReader } from '../tileStore.ts';
import { readBundleBytes, readEntries } from './readTiles.ts';
import { TILE_WIDTH } from './tiles.ts';

const INDEX = /^\{"hash":"[0-9a-f]{64}","index":(0|[1-9][0-9]*)\}/;
/** The longest entry has an index of 16 digits. */
const MAX_ENTRY_CHARS = 110;
const ENTRY = /^\{"hash":"([0-9a-f]{64}|)","index":(0|[1-9][0-9]*)\}$/;

/**
 * The entry of an event: the canonical JSON (RFC 8785) of its hash and its index. Events written by
 * other applications have no such hash. Their entries have an empty hash, so that indexes stay
 * aligned.
 */
export const leafEntry = (eventHash: string, index: number): Buffer =>
  Buffer.from(`{"hash":"${isHash(eventHash) ? eventHash : ''}","index":${index}}`, 'latin1');

/** Parses the entry of an event. Throws `proof_invalid` for any other entry. */
export function parseLeafEntry(entry: Uint8Array): { hash: string; index: number } {
  const [, hash, index] = ENTRY.exec(Buffer.from(entry).toString('latin1')) ?? [];
  if (hash === undefined)
    throw proofInvalidError('An entry of the transparency log is not of an event.');
  return { hash, index: Number(index) };
}

/**
 * True when a leaf of a tree of `size` leaves is of the event with this hash. Throws `proof_invalid` when
 * its entry bundle is missing or has the wrong length.
 */
export async function isLeafOf(
  reader: Pick<TileReader, 'read'>,
  { index, size }: { index: number; size: number },
  eventHash: string,
): Promise<boolean> {
  const entries = await readEntries(reader, Math.floor(index / TILE_WIDTH), size);
  return leafEntry(eventHash, index).equals(entries[index % TILE_WIDTH]!);
}

/**
 * The last entry bundle that begins before the event, in a tree of `size` leaves. Throws
 * `proof_invalid` when the index of bundles is incomplete, which no signature covers and which is
 * rebuilt from the log.
 */
export async function findBundle(
  reader: Pick<TileReader, 'beforeBundle'>,
  position: Position,
  size: number,
): Promise<number> {
  let first = 0;
  let last = Math.ceil(size / TILE_WIDTH) - 1;
  while (first < last) {
    const middle = Math.ceil((first + last) / 2);
    const before = await reader.beforeBundle(middle);
    if (!before)
      throw proofInvalidError(
        `The transparency log does not know where bundle ${middle} begins: its index of bundles is damaged. A running server rebuilds it from the log.`,
      );
    if (before.position < position) first = middle;
    else last = middle - 1;
  }
  return first;
}

/**
 * Finds the index of an event's leaf among the first `size` leaves; undefined when there is none.
 * Uses a binary search over the bundle starts and then reads one bundle. The index is unverified:
 * the caller must prove it. Throws `proof_invalid` when files of the tree are incomplete.
 */
export async function findLeafIndex(
  reader: Pick<TileReader, 'read' | 'beforeBundle'>,
  event: { position: Position; hash: string },
  size: number,
): Promise<number | undefined> {
  if (size === 0 || !isHash(event.hash)) return undefined;
  const bundle = await findBundle(reader, event.position, size);
  return findLeafIndexInBundle(reader, { bundle, size }, event.hash);
}

/**
 * Finds the index of a hash in one bundle of a tree of `size` leaves; undefined when it is not there.
 * Throws `proof_invalid` when the bundle is missing or damaged.
 */
export async function findLeafIndexInBundle(
  reader: Pick<TileReader, 'read'>,
  { bundle, size }: { bundle: number; size: number },
  hash: string,
): Promise<number | undefined> {
  if (size === 0 || !isHash(hash)) return undefined;
  const bytes = await readBundleBytes(reader, bundle, size);
  const at = offsetOf(bytes, hash, 0);
  if (at >= 0) return indexAt(bytes, at, { bundle, size });
  // Tells a damaged bundle from one without the event.
  await readEntries(reader, bundle, size);
  return undefined;
}

/** The offset of an entry, from an offset on; parsing all entries takes twenty times as long. */
const offsetOf = (bundle: Buffer, hash: string, from: number): number =>
  bundle.indexOf(`{"hash":"${hash}","index":`, from, 'latin1');

/** The index in the entry at an offset of a bundle, if it belongs there. */
function indexAt(
  bytes: Buffer,
  at: number,
  { bundle, size }: { bundle: number; size: number },
): number | undefined {
  const [, index] = INDEX.exec(bytes.toString('latin1', at, at + MAX_ENTRY_CHARS)) ?? [];
  const leaf = Number(index ?? NaN);
  return Math.floor(leaf / TILE_WIDTH) === bundle && leaf < size ? leaf : undefined;
}

/** A found leaf, and the bundle that has it. */
interface FoundLeaf {
  bundle: number;
  bytes: Buffer;
  /** The offset of its entry. */
  at: number;
  position: Position;
  /** The position of the last event in the bundle. */
  until: Position;
}

/**
 * Returns a function that finds the leaves of events in their order, as `findLeafIndex` does. It goes on
 * in the bundle of the leaf before, for as long as that is the one of the event's position.
 */
export function createLeafFinder(
  reader: Pick<TileReader, 'read' | 'beforeBundle'>,
  size: number,
): (event: { position: Position; hash: string }) => Promise<number | undefined> {
  let last: FoundLeaf | undefined;

  async function findAnew(event: { position: Position; hash: string }) {
    last = undefined;
    const index = await findLeafIndex(reader, event, size);
    if (index === undefined) return undefined;
    const bundle = Math.floor(index / TILE_WIDTH);
    const until = (await reader.beforeBundle(bundle + 1))?.position;
    if (until === undefined) return index;
    const bytes = await readBundleBytes(reader, bundle, size);
    last = { bundle, bytes, at: offsetOf(bytes, event.hash, 0), position: event.position, until };
    return index;
  }

  return async (event) => {
    const { hash, position } = event;
    if (!last || !isHash(hash) || position <= last.position || position > last.until)
      return findAnew(event);
    const { bundle, bytes } = last;
    const at = offsetOf(bytes, hash, last.at);
    if (at < 0) return findAnew(event);
    last = { ...last, at, position };
    return indexAt(bytes, at, { bundle, size });
  };
}
