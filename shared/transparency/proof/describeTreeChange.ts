import { recordedHash } from '../../eventlog/hashChain.ts';
import type { EventStore, StoredEvent } from '../../ports/eventStore.ts';
import type { TileReader } from '../tileStore.ts';
import { parseLeafEntry } from '../tlog/leaf.ts';
import { readEntries } from '../tlog/readTiles.ts';
import { TILE_WIDTH } from '../tlog/tiles.ts';

const BATCH_SIZE = 1_000;

interface Where {
  store: Pick<EventStore, 'subscribe'>;
  reader: Pick<TileReader, 'read'>;
  /** Number of leaves of the tree. */
  size: number;
  signal: AbortSignal;
}

/** An event at a position where the tree has a different one. */
interface Other {
  index: number;
  found: StoredEvent;
  /** The hash of the original event. */
  expected: string;
}

/**
 * Searches later events for the expected event, and for the event that follows it in its stream.
 */
async function lookInLog(
  { store, signal }: Where,
  { found: actual, expected }: Other,
): Promise<{ moved: boolean; next: StoredEvent | undefined }> {
  let next: StoredEvent | undefined;
  const batches = store.subscribe({ after: actual.position, batchSize: BATCH_SIZE, signal });
  for await (const { events, caughtUp } of batches) {
    if (events.some((event) => recordedHash(event) === expected)) return { moved: true, next };
    next ??= [actual, ...events].find((event) =>
      event.metadata.includes(`"prev_hash":"${expected}"`),
    );
    if (caughtUp) break;
  }
  return { moved: false, next };
}

/** The index of the first leaf with this hash; undefined when there is none or it is unreadable. */
async function leafOf({ reader, size, signal }: Where, hash: string): Promise<number | undefined> {
  for (let bundle = 0; bundle * TILE_WIDTH < size && !signal.aborted; bundle += 1) {
    try {
      const entries = await readEntries(reader, bundle, size);
      const at = entries.findIndex((entry) => parseLeafEntry(entry).hash === hash);
      if (at >= 0) return bundle * TILE_WIDTH + at;
    } catch {
      // Leaves of a damaged bundle cannot be identified.
    }
  }
  return undefined;
}

/**
 * Describes the change to a log at a position where the tree has a different event, as a sentence
 * about the event found there. Reads the rest of the log and the entries of the tree.
 */
export async function describeTreeChange(where: Where, other: Other): Promise<string> {
  const { index, expected, found: actual } = other;
  const leaf = await leafOf(where, recordedHash(actual));
  const { moved, next } = await lookInLog(where, other);
  const expectedLeaf = `leaf ${index} is of an event with the hash ${expected}`;
  if (leaf !== undefined && leaf < index)
    return `it is a duplicate: its leaf is ${leaf}, and ${expectedLeaf}`;
  if (moved && leaf === undefined)
    return `it was inserted: it has no leaf, and ${expectedLeaf}, which follows`;
  if (moved)
    return `it was swapped or moved: its leaf is ${leaf}, and ${expectedLeaf}, which follows`;
  if (leaf !== undefined)
    return `an event was dropped before it: its leaf is ${leaf}, and ${expectedLeaf}, ${
      next ? `revision ${next.revision - 1} of ${next.stream}` : 'the last one of its stream'
    }, which is gone`;
  return `it was changed, and its hash with it: ${expectedLeaf}`;
}
