import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { storeUnavailableError } from '../../shared/lib/errors/turnlogError.ts';
import type { TileStore, TileTrees } from '../../shared/transparency/tileStore.ts';
import { parseTilePath, TILE_WIDTH } from '../../shared/transparency/tlog/tiles.ts';
import { firstUnknownStart, writeBundleStarts } from './bundleIndex.ts';
import { withDiskErrors, writeFilesAndNotify, writeFileAtomically } from './atomicWrite.ts';
import {
  BUNDLES_FILE,
  CHECKPOINT_FILE,
  readIfPresent,
  CURRENT_FILE,
  fileTileReader,
  STATE_FILE,
} from './tileReader.ts';

/** The store of one tree, which has its own folder. */
function treeIn(folder: string): TileStore {
  const reader = fileTileReader(async () => folder);

  /** Deletes partial tiles whose full tile is written: they are its beginning. */
  async function clearPartials(paths: readonly string[]): Promise<void> {
    for (const path of paths)
      if (parseTilePath(path)?.width === TILE_WIDTH)
        await rm(join(folder, `${path}.p`), { recursive: true, force: true });
  }

  return {
    ...reader,
    grow: ({ from, files, bundles, state }) =>
      withDiskErrors(async () => {
        const { size } = await reader.state();
        if (size !== from)
          throw storeUnavailableError(`The tree has ${size} leaves, and was to grow from ${from}.`);
        // Files beyond the state are written again after a crash.
        await writeFilesAndNotify({
          files: files.map(({ path, bytes }) => ({ path: join(folder, path), bytes })),
          beside: () => writeBundleStarts(join(folder, BUNDLES_FILE), bundles),
          onDurable: () => clearPartials(files.map(({ path }) => path)),
          last: { path: join(folder, STATE_FILE), bytes: `${JSON.stringify(state)}\n` },
        });
      }),
    firstUnknownBundle: (bundles) =>
      withDiskErrors(() => firstUnknownStart(join(folder, BUNDLES_FILE), bundles)),
    putBundles: (bundles) =>
      withDiskErrors(() => writeBundleStarts(join(folder, BUNDLES_FILE), bundles)),
    publish: (checkpoint) =>
      withDiskErrors(() =>
        writeFileAtomically({ path: join(folder, CHECKPOINT_FILE), bytes: checkpoint }),
      ),
  };
}

/**
 * The trees in a folder, which is created on demand. Each tree has a subfolder named by its origin.
 */
export const openFileTileTrees = (folder: string): TileTrees => ({
  open: (origin) =>
    withDiskErrors(async () => {
      const current = join(folder, CURRENT_FILE);
      if ((await readIfPresent(current))?.toString() !== `${origin}\n`)
        await writeFileAtomically({ path: current, bytes: `${origin}\n` });
      return treeIn(join(folder, origin));
    }),
});
