import { join } from 'node:path';
import { proofInvalidError } from '../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint } from '../../shared/ports/eventStore.ts';
import {
  parseIndexCheckpoint,
  type TileReader,
  type TreeState,
} from '../../shared/transparency/tileStore.ts';
import { parseTilePath } from '../../shared/transparency/tlog/tiles.ts';
import { readRegularFile, readRegularFileSync } from '../lib/regularFile.ts';
import { readBundleStart, readBundleStartSync } from './bundleIndex.ts';
import { isAbsent, withDiskErrors } from './atomicWrite.ts';

/** Files in the folder of a tree, next to `tile/`. */
export const CHECKPOINT_FILE = 'checkpoint';
export const STATE_FILE = 'state.json';
export const BUNDLES_FILE = 'bundles';
/**
 * In the folder of all trees: contains the origin to read. No part of an origin begins with a dot.
 */
export const CURRENT_FILE = '.current';

const EMPTY: TreeState = { size: 0, checkpoint: undefined };

const ifPresent = <Found>(reading: Promise<Found>): Promise<Found | undefined> =>
  reading.catch((error: unknown) => {
    if (isAbsent(error)) return undefined;
    throw error;
  });

/** Reads a file; undefined when it does not exist. */
export const readIfPresent = (file: string): Promise<Buffer | undefined> =>
  ifPresent(readRegularFile(file));

function parseState(text: string, file: string): TreeState {
  try {
    const { size, checkpoint } = JSON.parse(text) as { size: unknown; checkpoint: unknown };
    const after = parseIndexCheckpoint(JSON.stringify(checkpoint));
    if (Number.isSafeInteger(size) && (size as number) > 0 && after)
      return { size: size as number, checkpoint: after };
  } catch {
    // Invalid JSON gives the error below.
  }
  throw proofInvalidError(`${file} does not say how large the tree is. Put it back from a backup.`);
}

/** Reads the files of a tree. */
interface FileReads {
  read(file: string): Promise<Buffer>;
  start(file: string, bundle: number): Promise<Checkpoint | undefined>;
}

const READS: FileReads = { read: readRegularFile, start: readBundleStart };

/** Blocks the thread during each read, which takes a fraction of the CPU time. */
export const BLOCKING_READS: FileReads = {
  read: async (file) => readRegularFileSync(file),
  start: async (file, bundle) => readBundleStartSync(file, bundle),
};

/**
 * Creates a reader of a tree. `folderNow` resolves with the absolute path of its folder, or
 * undefined while no tree exists. Reads reject with `store_unavailable`, or `proof_invalid` for a
 * damaged state.
 */
export function fileTileReader(
  folderNow: () => Promise<string | undefined>,
  reads = READS,
): TileReader {
  const inFolder = <Found>(file: string, read: (path: string) => Promise<Found>) =>
    withDiskErrors(async () => {
      const folder = await folderNow();
      return folder === undefined ? undefined : ifPresent(read(join(folder, file)));
    });
  const contentIn = (file: string): Promise<Buffer | undefined> => inFolder(file, reads.read);
  return {
    read: async (path) => (parseTilePath(path) ? contentIn(path) : undefined),
    readCheckpoint: async () => (await contentIn(CHECKPOINT_FILE))?.toString(),
    beforeBundle: async (bundle) =>
      bundle === 0 ? undefined : inFolder(BUNDLES_FILE, (file) => reads.start(file, bundle)),
    async state() {
      const text = await contentIn(STATE_FILE);
      return text === undefined ? EMPTY : parseState(text.toString(), STATE_FILE);
    },
  };
}

const openedLast = (folder: string) => async (): Promise<string | undefined> => {
  const origin = (await readIfPresent(join(folder, CURRENT_FILE)))?.toString().trim();
  return origin === undefined || origin === '' ? undefined : join(folder, origin);
};

/** Creates a reader of the tree of one origin. */
export const openFileTree = (folder: string, origin: string): TileReader =>
  fileTileReader(async () => join(folder, origin));

/** A reader that exposes the folder of its tree; undefined while no tree exists. */
export interface CheckedTree extends TileReader {
  folder: () => Promise<string | undefined>;
}

/**
 * Creates a reader of the most recently opened tree. It stays on the first tree that it finds, even
 * if another one is opened later.
 */
export function openOneFileTree(folder: string): CheckedTree {
  const find = openedLast(folder);
  let treeFolder: string | undefined;
  const findOnce = async (): Promise<string | undefined> => (treeFolder ??= await find());
  return { ...fileTileReader(findOnce), folder: findOnce };
}
