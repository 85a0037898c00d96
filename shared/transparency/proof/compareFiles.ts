import type { Position } from '../../ports/eventStore.ts';
import type { TileFile, TileReader } from '../tileStore.ts';
import { HASH_BYTES } from '../tlog/merkle.ts';
import { parseTilePath, TILE_WIDTH, tilePath } from '../tlog/tiles.ts';

type Tiles = Pick<TileReader, 'read'>;

export const sameBytes = (one: Uint8Array, other: Uint8Array): boolean =>
  Buffer.compare(one, other) === 0;

/** The bytes at a path; those of the full tile where a partial one is gone. */
async function storedFile(
  reader: Tiles,
  { path, bytes }: TileFile,
): Promise<Uint8Array | undefined> {
  const stored = await reader.read(path);
  if (stored) return stored;
  const full = await reader.read(tilePath({ ...parseTilePath(path)!, width: TILE_WIDTH }));
  return full?.subarray(0, bytes.length);
}

/** What is wrong with a stored file that has to be this one. */
async function faultOf(reader: Tiles, file: TileFile): Promise<string | undefined> {
  const { path, bytes } = file;
  const stored = await storedFile(reader, file);
  if (!stored) return `${path} is missing`;
  if (sameBytes(stored, bytes)) return undefined;
  const at = bytes.findIndex((byte, where) => byte !== stored[where]);
  const isHash = at >= 0 && parseTilePath(path)!.level !== 'entries';
  const what = isHash ? `its hash ${Math.floor(at / HASH_BYTES)}` : 'it';
  return `${path} was changed: ${what} is not what the log gives`;
}

/**
 * Compares the files of a tree that is made anew, in the order in which they are made, with those
 * that are stored of its first `size` leaves: the full ones, and the partial ones where it ends.
 */
export function compareFiles(reader: Tiles, size: number) {
  /** The last tile of each level, as long as it is partial. */
  const partial = new Map<number | 'entries', TileFile>();

  function due(files: readonly TileFile[], count: number): TileFile[] {
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
    /** Why one of the files does not fit that are new with `count` leaves. Errors: the reader's. */
    async fault(files: readonly TileFile[], count: number): Promise<string | undefined> {
      if (count > size) return undefined;
      for (const file of due(files, count)) {
        const fault = await faultOf(reader, file);
        if (fault !== undefined) return fault;
      }
      return undefined;
    },
  };
}

/**
 * What is wrong with what is kept of where a bundle begins: after this event, the last one before it.
 * No tile shows it, and without it events are not found in the tree. Errors: the reader's.
 */
export async function bundleStartFault(
  reader: Pick<TileReader, 'beforeBundle'>,
  bundle: number,
  { id, position, hash }: { id: string; position: Position; hash: string },
): Promise<string | undefined> {
  const kept = await reader.beforeBundle(bundle);
  if (kept?.position === position && kept.event_id === id && kept.event_hash === hash)
    return undefined;
  const said = kept ? `${kept.event_id} at ${kept.position}` : 'nothing that can be read';
  return `bundle ${bundle} begins after the event ${id} at ${position}, and where bundles begin (\`bundles\`) says ${said}. Stop the server and take that away: the next start reads it anew from the log`;
}
