/**
 * The tile store port: where the transparency log of a log is kept. Every adapter passes
 * test/contracts/tileStore.ts.
 */
import type { Checkpoint } from './eventStore.ts';

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

/** What grows it; one process at a time. */
export interface TileStore extends TileReader {
  /**
   * Writes tiles and entry bundles, what `beforeBundle` tells of those that begin, and the state;
   * durable when it resolves. After a crash in between the state is the one before, and the same
   * files are written again.
   */
  grow(
    files: readonly TileFile[],
    bundles: ReadonlyMap<number, Checkpoint>,
    state: TreeState,
  ): Promise<void>;
  /** Replaces the signed checkpoint; durable when it resolves. */
  publish(checkpoint: string): Promise<void>;
  close(): Promise<void>;
}
