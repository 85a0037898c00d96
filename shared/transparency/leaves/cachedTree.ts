import { LRUCache } from 'lru-cache';
import type { Checkpoint } from '../../ports/eventStore.ts';
import type { TileReader } from '../tileStore.ts';
import { entriesUpTo } from '../../lib/memory/entriesUpTo.ts';

/** Tiles and entry bundles that are held; one has at most 24 KiB. */
const MAX_FILES = 128;
/** Starts of bundles that are held. */
const MAX_STARTS = 4_096;

/** The parts of a reader that never change within a tree. */
export type TreeFiles = Pick<TileReader, 'read' | 'beforeBundle'>;

/** Creates a reader that holds a bounded number of files and bundle starts of one tree in memory. */
export function cachedTree(reader: TreeFiles): TreeFiles {
  const files = new LRUCache<string, Uint8Array>({ max: MAX_FILES });
  const starts = new LRUCache<number, Checkpoint>(entriesUpTo(MAX_STARTS));
  return {
    async read(path) {
      const held = files.get(path);
      if (held) return held;
      const bytes = await reader.read(path);
      if (bytes) files.set(path, bytes);
      return bytes;
    },
    async beforeBundle(bundle) {
      const held = starts.get(bundle);
      if (held) return held;
      const start = await reader.beforeBundle(bundle);
      if (start) starts.set(bundle, start);
      return start;
    },
  };
}
