import { decodeEvent } from '../../eventlog/codec.ts';
import type { EventMetadata } from '../../eventlog/event.ts';
import type { EventStore, StoredEvent } from '../../ports/eventStore.ts';
import type { TileReader } from '../tileStore.ts';
import { parseLeafEntry } from '../tlog/leaf.ts';
import { readEntries } from '../tlog/readTiles.ts';
import { TILE_WIDTH } from '../tlog/tiles.ts';

const BATCH_SIZE = 1_000;

interface Where {
  store: Pick<EventStore, 'subscribe'>;
  reader: Pick<TileReader, 'read'>;
  /** Leaves of the tree. */
  size: number;
  signal: AbortSignal;
}

/** An event that stands where the tree has another one. */
interface Other {
  index: number;
  found: StoredEvent;
  /** Of the event that was there. */
  expected: string;
}

/** As metadata end that we have written: no need to parse them. */
const OWN_END = /,"hash":"([0-9a-f]{64})"\}$/;

/** The hash of an event as it says itself; empty where it says none, or can't be decoded. */
export function recordedHash(stored: StoredEvent): string {
  const own = OWN_END.exec(stored.metadata.slice(-75))?.[1];
  if (own !== undefined) return own;
  try {
    const { hash } = decodeEvent(stored).metadata as Partial<EventMetadata>;
    return typeof hash === 'string' ? hash : '';
  } catch {
    return '';
  }
}

/** The event that was due among those that follow, and the one whose chain goes on from it. */
async function lookInLog(
  { store, signal }: Where,
  { found, expected }: Other,
): Promise<{ moved: boolean; next: StoredEvent | undefined }> {
  let next: StoredEvent | undefined;
  const batches = store.subscribe({ after: found.position, batchSize: BATCH_SIZE, signal });
  for await (const { events, caughtUp } of batches) {
    if (events.some((event) => recordedHash(event) === expected)) return { moved: true, next };
    next ??= [found, ...events].find((event) =>
      event.metadata.includes(`"prev_hash":"${expected}"`),
    );
    if (caughtUp) break;
  }
  return { moved: false, next };
}

/** The leaf of a hash, the first one; undefined where the tree has none, or is not whole. */
async function leafOf({ reader, size, signal }: Where, hash: string): Promise<number | undefined> {
  for (let bundle = 0; bundle * TILE_WIDTH < size && !signal.aborted; bundle += 1) {
    try {
      const entries = await readEntries(reader, bundle, size);
      const at = entries.findIndex((entry) => parseLeafEntry(entry).hash === hash);
      if (at >= 0) return bundle * TILE_WIDTH + at;
    } catch {
      // What is not whole has no leaf that could be named.
    }
  }
  return undefined;
}

/**
 * What was done to a log where the tree has another event: a sentence without its subject, the event
 * that is found there. Reads what follows of the log, and the tree's entries. Errors:
 * `store_unavailable`.
 */
export async function nameChange(where: Where, other: Other): Promise<string> {
  const { index, expected, found } = other;
  const leaf = await leafOf(where, recordedHash(found));
  const { moved, next } = await lookInLog(where, other);
  const due = `leaf ${index} is of an event with the hash ${expected}`;
  if (leaf !== undefined && leaf < index)
    return `it is a duplicate: its leaf is ${leaf}, and ${due}`;
  if (moved && leaf === undefined)
    return `it was inserted: it has no leaf, and ${due}, which follows`;
  if (moved) return `it was swapped or moved: its leaf is ${leaf}, and ${due}, which follows`;
  if (leaf !== undefined)
    return `an event was dropped before it: its leaf is ${leaf}, and ${due}, ${
      next ? `revision ${next.revision - 1} of ${next.stream}` : 'the last one of its stream'
    }, which is gone`;
  return `it was changed, and its hash with it: ${due}`;
}
