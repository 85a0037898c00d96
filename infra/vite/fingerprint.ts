import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** The folders of a workspace, by the folder of its sources. */
export const foldersOf = (sources: string) => ({
  /** The files that are served. */
  built: join(sources, 'dist'),
  /** The lock and the output of a build in progress. Ignored by tools, like every hidden folder. */
  temporary: join(sources, '.build'),
});

/** In the folder of the built files: the fingerprint of the sources that they were built from. */
export const FINGERPRINT_FILE = '.fingerprint';

/** Documentation and generated types change nothing of what is built. */
const isSource = (name: string): boolean =>
  !['node_modules', 'dist'].includes(name) && !/^\.|\.md$|\.gen\.d\.ts$/.test(name);

async function listSources(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const lists = await Promise.all(
    entries
      .filter(({ name }) => isSource(name))
      .map(async (entry) => {
        const path = join(folder, entry.name);
        return entry.isDirectory() ? listSources(path) : [path];
      }),
  );
  return lists.flat().toSorted();
}

/** A hash of the sources of a workspace and of its lockfile. Throws the errors of the file system. */
export async function fingerprintOf(sources: string): Promise<string> {
  const hash = createHash('sha256');
  for (const path of await listSources(sources)) {
    const content = await readFile(path);
    hash.update(`${relative(sources, path)}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/**
 * Returns true if a workspace is built from its current sources. Where only the built files were
 * packaged, they are current.
 */
export async function isBuilt(sources: string): Promise<boolean> {
  const { built } = foldersOf(sources);
  if (!existsSync(join(built, 'index.html'))) return false;
  if (!existsSync(join(sources, 'package.json'))) return true;
  const recorded = await readFile(join(built, FINGERPRINT_FILE), 'utf8').catch(() => undefined);
  return recorded === (await fingerprintOf(sources));
}
