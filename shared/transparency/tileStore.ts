/**
 * The tile store port: storage for the transparency log of an event log. Every adapter passes
 * test/contracts/tileStore.ts. Until a tree exists, every read returns undefined or an empty
 * state.
 */
import type { Checkpoint, Position } from '../ports/eventStore.ts';

/** The size of the tree and the checkpoint of the follower that grows it. */
export interface TreeState {
  /** Number of leaves. */
  size: number;
  /** The last event that has a leaf; undefined before the first. */
  checkpoint: Checkpoint | undefined;
}

/** A file of C2SP tlog-tiles: its path below the prefix (`tile/0/000`) and its bytes. */
export interface TileFile {
  path: string;
  bytes: Uint8Array;
}

/** Reads the tree. Every method rejects with `store_unavailable` when the store is unreachable. */
export interface TileReader {
  /** The bytes at a path of C2SP tlog-tiles (`tile/…`); undefined when the file does not exist. */
  read(path: string): Promise<Uint8Array | undefined>;
  /** The newest signed checkpoint with its cosignatures; undefined before the first. */
  readCheckpoint(): Promise<string | undefined>;
  /**
   * The start of entry bundle N: the checkpoint of the last event before leaf 256 × N; undefined
   * for the first bundle. It maps a leaf to its event and an event to its leaf.
   */
  beforeBundle(bundle: number): Promise<Checkpoint | undefined>;
  state(): Promise<TreeState>;
}

/** An extension of the tree. */
export interface Growth {
  /** Number of leaves before the extension. */
  from: number;
  /** New or wider tiles and entry bundles. Full ones replace partial ones. */
  files: readonly TileFile[];
  /** The results of `beforeBundle` for the bundles that begin in this extension. */
  bundles: ReadonlyMap<number, Checkpoint>;
  state: TreeState;
}

/** Grows a tree. Only one process does so at a time. */
export interface TileStore extends TileReader {
  /**
   * Writes files, bundles and state, which are durable when it resolves. After a crash in between,
   * the previous state applies and the same files are written again. Errors: `store_unavailable`,
   * also when the tree no longer has `from` leaves because another process has grown it.
   */
  grow(growth: Growth): Promise<void>;
  /** The first bundle from 1 to `bundles` − 1 whose start is missing or damaged. */
  firstUnknownBundle(bundles: number): Promise<number | undefined>;
  /** Stores the starts of bundles, which are durable when it resolves. */
  putBundles(bundles: ReadonlyMap<number, Checkpoint>): Promise<void>;
  /** Replaces the signed checkpoint durably. Errors: `store_unavailable`. */
  publish(checkpoint: string): Promise<void>;
}

/** All stored trees, one per origin. */
export interface TileTrees {
  /**
   * Opens the tree of this origin, which is empty when it is new. All later reads use this tree.
   * Errors: `store_unavailable`.
   */
  open(origin: string): Promise<TileStore>;
}

/** The exclusive right to grow trees, until `lost` is aborted. */
export interface ActiveTrees extends TileTrees {
  lost: AbortSignal;
  close(): Promise<void>;
}

/** Parses the JSON of a checkpoint in a state or an index of bundles; undefined for any other text. */
export function parseIndexCheckpoint(text: string): Checkpoint | undefined {
  try {
    const value = JSON.parse(text) as Record<string, unknown> | null;
    const { log_id, position, event_id, event_hash } = value ?? {};
    const all = [log_id, position, event_id, event_hash];
    if (!all.every((member) => typeof member === 'string')) return undefined;
    const [id, at, event, hash] = all as [string, string, string, string];
    return { log_id: id, position: at as Position, event_id: event, event_hash: hash };
  } catch {
    return undefined;
  }
}
