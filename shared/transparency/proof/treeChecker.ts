import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';
import type { TileReader } from '../tileStore.ts';
import { leafEntry, parseLeafEntry } from '../tlog/leaf.ts';
import { leafHash } from '../tlog/merkle.ts';
import { readEntries, readHashes } from '../tlog/readTiles.ts';
import { openRightEdge } from '../tlog/rightEdge.ts';
import { TILE_WIDTH, tilePath, widthAt } from '../tlog/tiles.ts';
import type { TreeHead } from '../tlog/verify.ts';
import { findBundleStartFault, compareFiles, sameBytes } from './compareFiles.ts';
import { truncatedLogFault, wrongRootFault, type TreeFault } from './treeFault.ts';

/** Bundles read together: waiting for the disk at each costs more than comparing it. */
const READ_AHEAD = 16;

/** Leaves the error to the caller that awaits the result. */
function startReading<Result>(reading: Promise<Result>): Promise<Result> {
  reading.catch(() => undefined);
  return reading;
}

/**
 * Reads a tree of `size` leaves from one bundle to the next: the entries, the lowest tile and the
 * start position of each bundle are read once, together with those of the next bundles. Everything
 * else is read on demand.
 */
function withBundlesAhead(reader: BundleReader, size: number) {
  let first = 0;
  let files = new Map<string, ReturnType<BundleReader['read']>>();
  let starts = new Map<number, ReturnType<BundleReader['beforeBundle']>>();

  const pathsOf = (index: number): string[] => {
    const width = widthAt(0, index, size);
    return [tilePath({ level: 'entries', index, width }), tilePath({ level: 0, index, width })];
  };

  return {
    read: (path: string) => files.get(path) ?? reader.read(path),
    beforeBundle: (bundle: number) => starts.get(bundle) ?? reader.beforeBundle(bundle),
    /** Must be called before a bundle of the tree is read. */
    enter(bundle: number): void {
      if (files.size > 0 && bundle >= first && bundle < first + READ_AHEAD) return;
      first = bundle;
      const count = Math.min(READ_AHEAD, Math.ceil(size / TILE_WIDTH) - first);
      const bundles = Array.from({ length: count }, (_, at) => first + at);
      const paths = bundles.flatMap(pathsOf);
      files = new Map(paths.map((path) => [path, startReading(reader.read(path))]));
      // A bundle's end is compared with the start position of the next one.
      const next = bundles.map((index) => index + 1).filter((index) => index * TILE_WIDTH < size);
      starts = new Map(next.map((index) => [index, startReading(reader.beforeBundle(index))]));
    },
  };
}

type BundleReader = Pick<TileReader, 'read' | 'beforeBundle'>;

/** The identity of an event in the log. */
type Placed = Pick<StoredEvent, 'id' | 'position'>;

/** An event with its recorded hash, to be compared with a leaf. */
export interface Leaf extends Placed {
  hash: string;
}

/** A fault and the index of the compared event that revealed it. */
export interface FoundFault {
  at: number;
  fault: TreeFault;
}

/** The part of a tree to compare. Plain data, so that it can be sent to a thread. */
export interface ComparedPart {
  /** Number of leaves of the stored tree. */
  size: number;
  /** Signed checkpoints of any size. */
  heads: readonly TreeHead[];
  /** Index of the first event to check. The tiles are trusted for earlier leaves. */
  from: number;
}

/** Compares the events of a log, in order, with the tree. Reads one bundle at a time. */
export interface TreeChecker {
  /** Number of leaves compared so far. */
  size: () => number;
  /**
   * Returns the first fault among the next events, which may be given before earlier ones were compared
   * where there is another thread. A fault ends the comparison: later results mean nothing.
   */
  compare: (leaves: readonly Leaf[]) => Promise<FoundFault | undefined>;
  /**
   * Hashes the contents of events on another thread, where there is one: returns the indexes of those for
   * which `isAsWritten` is false, in their order.
   */
  unlikeWritten?: (events: readonly StoredEvent[]) => Promise<readonly number[]>;
  /**
   * Call at the end of the log. Returns a fault when the end of the log or of the tree is missing,
   * or when a checkpoint of at most `from` leaves does not match the tiles.
   */
  end: () => Promise<TreeFault | undefined>;
}

/** The hash in an entry of the tree; empty when the entry is malformed. */
function hashIn(entry: Uint8Array): string {
  try {
    return parseLeafEntry(entry).hash;
  } catch {
    return '';
  }
}

/** The message of a `proof_invalid` error. Rethrows other errors. */
function reasonOf(error: unknown): string {
  if (isTurnlogError(error, 'proof_invalid')) return error.message;
  throw error;
}

/** Throws `proof_invalid` when tiles before `from` are missing or damaged. */
export async function createTreeChecker({
  reader: tiles,
  size,
  heads,
  from,
}: ComparedPart & { reader: BundleReader }): Promise<TreeChecker> {
  const reader = withBundlesAhead(tiles, size);
  const edge = await openRightEdge(reader, from, size);
  const files = compareFiles(reader, size);
  const sizes = new Set(heads.map((head) => head.size));
  let bundle: { index: number; entries: Uint8Array[] } | undefined;

  async function entryAt(index: number): Promise<Uint8Array> {
    const number = Math.floor(index / TILE_WIDTH);
    reader.enter(number);
    if (bundle?.index !== number)
      bundle = { index: number, entries: await readEntries(reader, number, size) };
    return bundle.entries[index % TILE_WIDTH]!;
  }

  /** Finds which of entry, tile and event was changed: the one that differs from the other two. */
  async function entryFault(index: number, eventEntry: Uint8Array): Promise<TreeFault | undefined> {
    const bundleIndex = Math.floor(index / TILE_WIDTH);
    const width = widthAt(0, bundleIndex, size);
    const path = tilePath({ level: 'entries', index: bundleIndex, width });
    try {
      const entry = await entryAt(index);
      if (sameBytes(entry, eventEntry)) return undefined;
      const hashes = await readHashes(reader, { level: 0, index: bundleIndex, size });
      if (sameBytes(hashes[index % TILE_WIDTH]!, leafHash(eventEntry)))
        return { index, kind: 'tile', reason: `the entry ${index} in ${path} was changed` };
      const expected = hashIn(entry);
      return { index, kind: 'event', expected, reason: `leaf ${index} is of the hash ${expected}` };
    } catch (error) {
      return { index, kind: 'tile', reason: `${path}: ${reasonOf(error)}` };
    }
  }

  async function filesFault(): Promise<TreeFault | undefined> {
    const count = edge.size();
    if (count % TILE_WIDTH !== 0 && count !== size) return undefined;
    const reason = await files.fault(edge.takeFiles(), count);
    return reason === undefined ? undefined : { index: count - 1, kind: 'tile', reason };
  }

  async function startFault(leaf: Leaf): Promise<TreeFault | undefined> {
    const count = edge.size();
    if (count % TILE_WIDTH !== 0 || count >= size) return undefined;
    const reason = await findBundleStartFault(reader, count / TILE_WIDTH, leaf);
    return reason === undefined ? undefined : { index: count - 1, kind: 'tile', reason };
  }

  /** Compares earlier checkpoints with the tiles, because the events before `from` are not read. */
  async function earlierFault(): Promise<TreeFault | undefined> {
    for (const head of heads) {
      if (head.size > from) continue;
      const earlier = await openRightEdge(reader, head.size, size);
      if (!earlier.root().equals(head.root)) return wrongRootFault(head.size);
    }
    return undefined;
  }

  function headFault(): TreeFault | undefined {
    const count = edge.size();
    if (!sizes.has(count)) return undefined;
    const root = edge.root();
    return heads.every((head) => head.size !== count || root.equals(head.root))
      ? undefined
      : wrongRootFault(count);
  }

  /** True when an event matches and needs no reads, which holds for most events. */
  function isPlain(index: number, eventEntry: Uint8Array): boolean {
    const count = index + 1;
    if (count % TILE_WIDTH === 0 || count === size || sizes.has(count)) return false;
    if (index >= size) return true;
    if (bundle?.index !== Math.floor(index / TILE_WIDTH)) return false;
    return sameBytes(bundle.entries[index % TILE_WIDTH]!, eventEntry);
  }

  /** Performs the reads that the comparison needs. */
  async function faultAt(eventEntry: Uint8Array, leaf: Leaf): Promise<TreeFault | undefined> {
    const index = edge.size();
    const fault = index < size ? await entryFault(index, eventEntry) : undefined;
    if (fault) return fault;
    edge.append(eventEntry);
    return (await filesFault()) ?? (await startFault(leaf)) ?? headFault();
  }

  return {
    size: edge.size,
    async compare(leaves) {
      for (const [at, leaf] of leaves.entries()) {
        const index = edge.size();
        const eventEntry = leafEntry(leaf.hash, index);
        // Awaiting each event would cost more than hashing it.
        if (isPlain(index, eventEntry)) {
          edge.append(eventEntry);
          continue;
        }
        const fault = await faultAt(eventEntry, leaf);
        if (fault) return { at, fault };
      }
      return undefined;
    },
    async end() {
      const count = edge.size();
      const head = Math.max(...sizes, 0);
      if (count < size) {
        const expected = await entryAt(count).then(hashIn, (error: unknown) => {
          reasonOf(error);
          return '';
        });
        return { ...truncatedLogFault(count, size, 'the transparency log has'), expected };
      }
      if (count < head) return truncatedLogFault(count, head, 'the checkpoint is of');
      if (head > size)
        return {
          index: size,
          kind: 'tile',
          reason: `the transparency log has ${size} leaves, and a checkpoint is of ${head}: it was cut off`,
        };
      return earlierFault();
    },
  };
}
