import { statfs } from 'node:fs/promises';

/** The space of a folder's file system, in bytes; undefined if it can't be measured. */
export async function measureSpace(
  folder: string,
): Promise<{ size: number; free: number } | undefined> {
  try {
    const { blocks, bavail, bsize } = await statfs(folder);
    // Some file systems have no size, and report nothing free.
    return blocks === 0 ? undefined : { size: blocks * bsize, free: bavail * bsize };
  } catch {
    return undefined;
  }
}
