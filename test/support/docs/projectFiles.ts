import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * What is installed or made by running, and whatever a tool keeps in a folder that begins with a
 * dot.
 */
const isForeign = (name: string): boolean =>
  ['node_modules', 'data', 'coverage', 'dist'].includes(name) ||
  name.endsWith('.gen.d.ts') ||
  name.startsWith('.');

/** The files of the project below `folder` (default: all), as paths from the root, in order. */
export const projectFiles = (folder = ''): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => !isForeign(name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? projectFiles(path) : [path];
    })
    .toSorted();

/** The text of a file, by its path from the root. */
export const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
