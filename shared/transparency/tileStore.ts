/**
 * The tile store port: where the transparency log of a log is kept. Every adapter passes
 * test/contracts/tileStore.ts. A service reads the tree that was opened last; of no tree there is
 * nothing to read.
 */
import type { Checkpoint } from '../ports/eventStore.ts';

/** How far the tree has come, and with it the follower that grows it. */
export interface TreeState {
  /** Leaves. */
  size: number;
  /** Of the last event that has a leaf; undefined before the first. */
  checkpoint: Checkpoint | undefined;
}

/** A file of C2SP tlog-tiles: its path below the prefix (`tile/0/000`), and its bytes. */
export interface TileFile {
  path: string;
  bytes: Uint8Array;
}

/** What reads the tree. All methods reject with `store_unavailable` where it can't be reached. */
export interface TileReader {
  /** The bytes at a path of C2SP tlog-tiles (`tile/…`); undefined where there are none. */
  read(path: string): Promise<Uint8Array | undefined>;
  /** The newest signed checkpoint, cosigned as far as witnesses did; undefined before the first. */
  readCheckpoint(): Promise<string | undefined>;
  /**
   * Where the events of entry bundle N begin: the checkpoint of the last event before leaf 256 × N;
   * undefined for the first bundle. Finds an event by its leaf, and a leaf by its event.
   */
  beforeBundle(bundle: number): Promise<Checkpoint | undefined>;
  state(): Promise<TreeState>;
}

/** What makes a tree larger. */
export interface Growth {
  /** Leaves before. */
  from: number;
  /** Tiles and entry bundles that are new or wider. Full ones take the place of partial ones. */
  files: readonly TileFile[];
  /** What `beforeBundle` tells of the bundles that begin. */
  bundles: ReadonlyMap<number, Checkpoint>;
  state: TreeState;
}

/** What grows a tree; one process at a time. */
export interface TileStore extends TileReader {
  /**
   * Writes files, bundles and state; durable when it resolves. After a crash in between the state is
   * the one before, and the same files are written again. Errors: `store_unavailable`, also where the
   * tree is no longer of `from` leaves: another process has grown it.
   */
  grow(growth: Growth): Promise<void>;
  /** The first of the bundles 1 to before `bundles` whose beginning is not known, or damaged. */
  firstUnknownBundle(bundles: number): Promise<number | undefined>;
  /** Keeps where bundles begin; durable when it resolves. */
  putBundles(bundles: ReadonlyMap<number, Checkpoint>): Promise<void>;
  /** Replaces the signed checkpoint; durable when it resolves. Errors: `store_unavailable`. */
  publish(checkpoint: string): Promise<void>;
}

/** All trees that are kept: each has its origin. */
export interface TileTrees {
  /**
   * The tree of this origin, empty where there was none; it is the one that is read from then on.
   * Errors: `store_unavailable`.
   */
  open(origin: string): Promise<TileStore>;
}

/** The right to grow trees, until it is lost. */
export interface ActiveTrees extends TileTrees {
  lost: AbortSignal;
  close(): Promise<void>;
}
