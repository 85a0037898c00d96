import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Mutation } from './mutations.ts';

/**
 * Copies what Git knows or would take of a tree into a new folder, and links its node_modules
 * there.
 */
export function copyTree(tree: string): { folder: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'turnlog-mutations-'));
  const listing = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const files = execFileSync('git', listing, { cwd: tree, encoding: 'utf8' }).split('\0');
  for (const file of files.filter((name) => name !== '' && existsSync(join(tree, name))))
    cpSync(join(tree, file), join(folder, file));
  symlinkSync(resolve(tree, 'node_modules'), join(folder, 'node_modules'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/**
 * The file's text with the mutation in it. Errors: a plain Error where `from` does not stand there
 * exactly once.
 */
export function broken(tree: string, { name, file, from, to }: Mutation): string {
  const parts = existsSync(join(tree, file))
    ? readFileSync(join(tree, file), 'utf8').split(from)
    : [];
  if (parts.length !== 2)
    throw new Error(`"${name}": its text stands ${Math.max(0, parts.length - 1)} times in ${file}`);
  return parts.join(to);
}

/** What the compiler has against a tree; undefined where it compiles. */
export function compilerSays(tree: string): string | undefined {
  const { status, stdout } = spawnSync(join(tree, 'node_modules/.bin/tsc'), {
    cwd: tree,
    encoding: 'utf8',
  });
  return status === 0 ? undefined : stdout;
}
