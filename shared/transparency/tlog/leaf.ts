/** The leaves of a log's tree: one for each event, in the order of the log, and it names nobody. */
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import type { Position } from '../../ports/eventStore.ts';
import type { TileReader } from '../tileStore.ts';
import { readEntries } from './readTiles.ts';
import { TILE_WIDTH } from './tiles.ts';

const HASH = /^[0-9a-f]{64}$/;
const ENTRY = /^\{"hash":"([0-9a-f]{64}|)","index":(0|[1-9][0-9]*)\}$/;

/**
 * The entry of an event: the canonical JSON (RFC 8785) of its hash and its index. An event without a
 * hash of ours, which only others write, has an empty one: its place is kept.
 */
export const leafEntry = (eventHash: string, index: number): Buffer =>
  Buffer.from(`{"hash":"${HASH.test(eventHash) ? eventHash : ''}","index":${index}}`, 'latin1');

/** What an entry says. Errors: `proof_invalid` where it is none of ours. */
export function parseLeafEntry(entry: Uint8Array): { hash: string; index: number } {
  const [, hash, index] = ENTRY.exec(Buffer.from(entry).toString('latin1')) ?? [];
  if (hash === undefined)
    throw proofInvalidError('An entry of the transparency log is not of an event.');
  return { hash, index: Number(index) };
}

/** The last bundle, of so many, that begins before the event. */
async function bundleOf(
  reader: Pick<TileReader, 'beforeBundle'>,
  position: Position,
  bundles: number,
): Promise<number> {
  let first = 0;
  let last = bundles - 1;
  while (first < last) {
    const middle = Math.ceil((first + last) / 2);
    const before = await reader.beforeBundle(middle);
    if (!before)
      throw proofInvalidError(
        `The transparency log does not know where bundle ${middle} begins: what it keeps of that is damaged. Restart the server, which reads it again from the log.`,
      );
    if (before.position < position) first = middle;
    else last = middle - 1;
  }
  return first;
}

/**
 * The index of an event's leaf, looked for among the first `size` leaves; undefined where none is
 * its. Reads one bundle, and a place for each halving of their number. What it finds is to be proven.
 * Errors: `proof_invalid` where the tree's files are not whole, those of the reader.
 */
export async function leafIndexOf(
  reader: Pick<TileReader, 'read' | 'beforeBundle'>,
  event: { position: Position; hash: string },
  size: number,
): Promise<number | undefined> {
  if (size === 0 || !HASH.test(event.hash)) return undefined;
  const bundle = await bundleOf(reader, event.position, Math.ceil(size / TILE_WIDTH));
  const entries = await readEntries(reader, bundle, size);
  const at = entries.findIndex((entry) => parseLeafEntry(entry).hash === event.hash);
  return at < 0 ? undefined : bundle * TILE_WIDTH + at;
}
