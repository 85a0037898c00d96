import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';
import type { TileReader } from '../tileStore.ts';
import { leafEntry, parseLeafEntry } from '../tlog/leaf.ts';
import { leafHash } from '../tlog/merkle.ts';
import { readEntries, readHashes } from '../tlog/readTiles.ts';
import { openRightEdge } from '../tlog/rightEdge.ts';
import { TILE_WIDTH, tilePath, widthAt } from '../tlog/tiles.ts';
import type { TreeHead } from '../tlog/verify.ts';
import { bundleStartFault, compareFiles, sameBytes } from './compareFiles.ts';
import { cutAt, wrongRoot, type TreeFault } from './treeFault.ts';

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
      const after = bundles.map((one) => one + 1).filter((one) => one * TILE_WIDTH < size);
      starts = new Map(after.map((one) => [one, startReading(reader.beforeBundle(one))]));
    },
  };
}

type BundleReader = Pick<TileReader, 'read' | 'beforeBundle'>;

/** An event as far as the tree has it. */
type Placed = Pick<StoredEvent, 'id' | 'position'>;

/** The same with the hash that it says it has: what is compared with a leaf. */
export interface Leaf extends Placed {
  hash: string;
}

/** A fault, and which of the events that were compared together shows it. */
export interface FoundFault {
  at: number;
  fault: TreeFault;
}

/** A tree as far as it is compared. Plain data, for a thread. */
export interface ComparedPart {
  /** Leaves of the tree that the reader has. */
  size: number;
  /** Checkpoints that were signed, of any size. */
  heads: readonly TreeHead[];
  /** Leaves before the first event that is checked: what the tiles say of them is taken. */
  from: number;
}

/** Compares the events of a log, in order, with the tree. All is read a bundle at a time. */
export interface TreeChecker {
  /** Leaves so far. */
  size: () => number;
  /** The first fault that the next events show; with one the comparison is over. */
  compare: (leaves: readonly Leaf[]) => Promise<FoundFault | undefined>;
  /**
   * The fault that is left when the log has no more events: its end is missing, or a checkpoint of no
   * more leaves than `from` does not fit the tiles.
   */
  end: () => Promise<TreeFault | undefined>;
}

/** A hash that is read of an entry of the tree; empty where it is none of ours. */
function hashIn(entry: Uint8Array): string {
  try {
    return parseLeafEntry(entry).hash;
  } catch {
    return '';
  }
}

/** What is not whole, in the sentence of whoever found it; other errors go on. */
function reasonOf(error: unknown): string {
  if (isTurnlogError(error, 'proof_invalid')) return error.message;
  throw error;
}

/** Errors: `proof_invalid` where the tiles before `from` are not whole; those of the reader. */
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

  /** Of entry, tile and event, one was changed: the two that agree were not. */
  async function entryFault(index: number, due: Uint8Array): Promise<TreeFault | undefined> {
    const bundleIndex = Math.floor(index / TILE_WIDTH);
    const width = widthAt(0, bundleIndex, size);
    const path = tilePath({ level: 'entries', index: bundleIndex, width });
    try {
      const entry = await entryAt(index);
      if (sameBytes(entry, due)) return undefined;
      const hashes = await readHashes(reader, { level: 0, index: bundleIndex, size });
      if (sameBytes(hashes[index % TILE_WIDTH]!, leafHash(due)))
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
    const reason = await bundleStartFault(reader, count / TILE_WIDTH, leaf);
    return reason === undefined ? undefined : { index: count - 1, kind: 'tile', reason };
  }

  /** Of what is not read again the tiles are taken; the checkpoints of it are compared with these. */
  async function earlierFault(): Promise<TreeFault | undefined> {
    for (const head of heads) {
      if (head.size > from) continue;
      const earlier = await openRightEdge(reader, head.size, size);
      if (!earlier.root().equals(head.root)) return wrongRoot(head.size);
    }
    return undefined;
  }

  function headFault(): TreeFault | undefined {
    const count = edge.size();
    if (!sizes.has(count)) return undefined;
    const root = edge.root();
    return heads.every((head) => head.size !== count || root.equals(head.root))
      ? undefined
      : wrongRoot(count);
  }

  /** True for most events: nothing is to be read for them, and they fit. */
  function isPlain(index: number, due: Uint8Array): boolean {
    const count = index + 1;
    if (count % TILE_WIDTH === 0 || count === size || sizes.has(count)) return false;
    if (index >= size) return true;
    if (bundle?.index !== Math.floor(index / TILE_WIDTH)) return false;
    return sameBytes(bundle.entries[index % TILE_WIDTH]!, due);
  }

  /** Reads what it takes. */
  async function faultAt(due: Uint8Array, leaf: Leaf): Promise<TreeFault | undefined> {
    const index = edge.size();
    const fault = index < size ? await entryFault(index, due) : undefined;
    if (fault) return fault;
    edge.append(due);
    return (await filesFault()) ?? (await startFault(leaf)) ?? headFault();
  }

  return {
    size: edge.size,
    async compare(leaves) {
      for (const [at, leaf] of leaves.entries()) {
        const index = edge.size();
        const due = leafEntry(leaf.hash, index);
        // To wait for each costs more than to hash it.
        if (isPlain(index, due)) {
          edge.append(due);
          continue;
        }
        const fault = await faultAt(due, leaf);
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
        return { ...cutAt(count, size, 'the transparency log has'), expected };
      }
      if (count < head) return cutAt(count, head, 'the checkpoint is of');
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
