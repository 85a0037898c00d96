import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { proofInvalidError } from '../../shared/lib/errors/turnlogError.ts';
import type { TileReader, TreeState } from '../../shared/transparency/tileStore.ts';
import { parseTilePath } from '../../shared/transparency/tlog/tiles.ts';
import { parseIndexCheckpoint, readBundleStart } from './bundleIndex.ts';
import { isAbsent, withDiskErrors } from './atomicWrite.ts';

/** In the folder of a tree, beside `tile/`. */
export const CHECKPOINT_FILE = 'checkpoint';
export const STATE_FILE = 'state.json';
export const BUNDLES_FILE = 'bundles';
/** In the folder of all trees: the origin of the one that is read. No part of an origin begins so. */
export const CURRENT_FILE = '.current';

const EMPTY: TreeState = { size: 0, checkpoint: undefined };

/** The bytes of a file; undefined where there is none. Errors: those of the file system. */
export const readIfPresent = (file: string): Promise<Buffer | undefined> =>
  readFile(file).catch((error: unknown) => {
    if (isAbsent(error)) return undefined;
    throw error;
  });

function parseState(text: string, file: string): TreeState {
  try {
    const { size, checkpoint } = JSON.parse(text) as { size: unknown; checkpoint: unknown };
    const after = parseIndexCheckpoint(JSON.stringify(checkpoint));
    if (Number.isSafeInteger(size) && (size as number) > 0 && after)
      return { size: size as number, checkpoint: after };
  } catch {
    // Told below.
  }
  throw proofInvalidError(`${file} does not say how large the tree is. Put it back from a backup.`);
}

/**
 * Reads a tree; `folderNow` has its folder, absolute, or undefined while there is no tree. Errors:
 * `store_unavailable`, `proof_invalid` for a state that can't be understood.
 */
export function fileTileReader(folderNow: () => Promise<string | undefined>): TileReader {
  const contentIn = (file: string): Promise<Buffer | undefined> =>
    withDiskErrors(async () => {
      const folder = await folderNow();
      return folder === undefined ? undefined : readIfPresent(join(folder, file));
    });
  return {
    read: async (path) => (parseTilePath(path) ? contentIn(path) : undefined),
    readCheckpoint: async () => (await contentIn(CHECKPOINT_FILE))?.toString(),
    beforeBundle: (bundle) =>
      withDiskErrors(async () => {
        const folder = await folderNow();
        return folder === undefined || bundle === 0
          ? undefined
          : readBundleStart(join(folder, BUNDLES_FILE), bundle);
      }),
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

/** Reads the tree, among those of a folder, that was opened last. Errors: as `fileTileReader`. */
export const openFileTileReader = (folder: string): TileReader =>
  fileTileReader(openedLast(folder));

/** A reader that tells which folder it reads: undefined while there is no tree. */
export interface CheckedTree extends TileReader {
  folder: () => Promise<string | undefined>;
}

/**
 * Reads the tree that had been opened last when it was first found, also where another one is opened
 * meanwhile. Errors: as `fileTileReader`.
 */
export function openOneFileTree(folder: string): CheckedTree {
  const find = openedLast(folder);
  let found: string | undefined;
  const one = async (): Promise<string | undefined> => (found ??= await find());
  return { ...fileTileReader(one), folder: one };
}
