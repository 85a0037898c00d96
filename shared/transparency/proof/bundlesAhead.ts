import type { TileReader } from '../tileStore.ts';
import { TILE_WIDTH, tilePath, widthAt } from '../tlog/tiles.ts';

type Reader = Pick<TileReader, 'read' | 'beforeBundle'>;

/** Bundles that are read together: to wait for the disk at each costs more than to compare it. */
const TOGETHER = 16;

/** Whoever asks for it hears of its error. */
function begun<Result>(reading: Promise<Result>): Promise<Result> {
  reading.catch(() => undefined);
  return reading;
}

/**
 * Reads a tree of `size` leaves from one bundle to the next: entries, lowest tile and place of each are
 * read once, and together with those of the bundles after it. All else is read when it is asked for.
 */
export function withBundlesAhead(reader: Reader, size: number) {
  let first = 0;
  let files = new Map<string, ReturnType<Reader['read']>>();
  let starts = new Map<number, ReturnType<Reader['beforeBundle']>>();

  const pathsOf = (index: number): string[] => {
    const width = widthAt(0, index, size);
    return [tilePath({ level: 'entries', index, width }), tilePath({ level: 0, index, width })];
  };

  return {
    read: (path: string) => files.get(path) ?? reader.read(path),
    beforeBundle: (bundle: number) => starts.get(bundle) ?? reader.beforeBundle(bundle),
    /** To be told before a bundle is read that the tree has. */
    enter(bundle: number): void {
      if (files.size > 0 && bundle >= first && bundle < first + TOGETHER) return;
      first = bundle;
      const left = Math.min(TOGETHER, Math.ceil(size / TILE_WIDTH) - first);
      const bundles = Array.from({ length: left }, (_, at) => first + at);
      const paths = bundles.flatMap(pathsOf);
      files = new Map(paths.map((path) => [path, begun(reader.read(path))]));
      // Of each the place of the one after it, which is compared where it ends.
      const after = bundles.map((one) => one + 1).filter((one) => one * TILE_WIDTH < size);
      starts = new Map(after.map((one) => [one, begun(reader.beforeBundle(one))]));
    },
  };
}
