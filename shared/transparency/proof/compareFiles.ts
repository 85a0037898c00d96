import type { Position } from '../../ports/eventStore.ts';
import type { TileFile, TileReader } from '../tileStore.ts';
import { HASH_BYTES } from '../tlog/merkle.ts';
import { parseTilePath, TILE_WIDTH, tilePath } from '../tlog/tiles.ts';

type Tiles = Pick<TileReader, 'read'>;

export const sameBytes = (left: Uint8Array, right: Uint8Array): boolean =>
  Buffer.compare(left, right) === 0;

/** Reads a file. Reads the beginning of the full tile when the partial one was deleted. */
async function storedFile(
  reader: Tiles,
  { path, bytes }: TileFile,
): Promise<Uint8Array | undefined> {
  const stored = await reader.read(path);
  if (stored) return stored;
  const full = await reader.read(tilePath({ ...parseTilePath(path)!, width: TILE_WIDTH }));
  return full?.subarray(0, bytes.length);
}

/** Describes how the stored file differs from the expected one; undefined when it does not. */
async function faultOf(reader: Tiles, file: TileFile): Promise<string | undefined> {
  const { path, bytes } = file;
  const stored = await storedFile(reader, file);
  if (!stored) return `${path} is missing`;
  if (sameBytes(stored, bytes)) return undefined;
  const at = bytes.findIndex((byte, where) => byte !== stored[where]);
  const isHash = at >= 0 && parseTilePath(path)!.level !== 'entries';
  const changedPart = isHash ? `its hash ${Math.floor(at / HASH_BYTES)}` : 'it';
  return `${path} was changed: ${changedPart} is not what the log gives`;
}

/**
 * Compares the files of a recomputed tree, in order, with the stored files of its first `size`
 * leaves: all full files, and the partial files at the end of the tree.
 */
export function compareFiles(reader: Tiles, size: number) {
  /** The last tile of each level while it is partial. */
  const partial = new Map<number | 'entries', TileFile>();

  function filesToCompare(files: readonly TileFile[], count: number): TileFile[] {
    const full: TileFile[] = [];
    for (const file of files) {
      const { level, width } = parseTilePath(file.path)!;
      partial.delete(level);
      if (width === TILE_WIDTH) full.push(file);
      else partial.set(level, file);
    }
    return count === size ? [...full, ...partial.values()] : full;
  }

  return {
    /** Describes the first mismatch among the files that are new at `count` leaves. */
    async fault(files: readonly TileFile[], count: number): Promise<string | undefined> {
      if (count > size) return undefined;
      for (const file of filesToCompare(files, count)) {
        const fault = await faultOf(reader, file);
        if (fault !== undefined) return fault;
      }
      return undefined;
    },
  };
}

/**
 * Describes a wrong or missing start of a bundle, which must be the given event, the last one
 * before the bundle. Tiles do not contain bundle starts, and the lookup of events in the tree
 * depends on them.
 */
export async function findBundleStartFault(
  reader: Pick<TileReader, 'beforeBundle'>,
  bundle: number,
  { id, position, hash }: { id: string; position: Position; hash: string },
): Promise<string | undefined> {
  const stored = await reader.beforeBundle(bundle);
  if (stored?.position === position && stored.event_id === id && stored.event_hash === hash)
    return undefined;
  const storedStart = stored
    ? `${stored.event_id} at ${stored.position}`
    : 'nothing that can be read';
  return `bundle ${bundle} begins after the event ${id} at ${position}, and where bundles begin (\`bundles\`) says ${storedStart}. Stop the server and take that away: the next start reads it anew from the log`;
}
