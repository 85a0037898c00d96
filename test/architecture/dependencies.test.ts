import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../../', import.meta.url));
const IMPORT = /(?:\bfrom|\bimport|\bimport\()\s*\(?'([^'\n]+)'/g;
const WORKER = /new URL\('(\.[^']+\.ts)', import\.meta\.url\)/g;

interface Import {
  file: string;
  /** A path below the root for files of ours, else the name of the module. */
  target: string;
}

const sourcesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name));

function importsOf(file: string): Import[] {
  const source = readFileSync(join(root, file), 'utf8');
  return [...source.matchAll(IMPORT), ...source.matchAll(WORKER)].map(([, specifier]) => ({
    file,
    target: specifier!.startsWith('.')
      ? relative(root, resolve(root, dirname(file), specifier!))
      : specifier!,
  }));
}

const imports = ['services', 'shared', 'infra'].flatMap(sourcesIn).flatMap(importsOf);
const isOurs = (target: string): boolean => /^(services|shared|infra|test)\//.test(target);
const packageOf = (target: string): string =>
  target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/');
const within = (folder: string) => (path: string) => path.startsWith(`${folder}/`);
const offenders = (
  where: (file: string) => boolean,
  allowed: (found: Import) => boolean,
): string[] =>
  imports
    .filter((found) => where(found.file) && !allowed(found))
    .map(({ file, target }) => `${file} → ${target}`);

describe('dependencies point inwards', () => {
  test('the rules see the imports at all', () => {
    expect(imports).toContainEqual({
      file: 'shared/domain/account/decider.ts',
      target: 'shared/domain/rejection.ts',
    });
    expect(imports.length).toBeGreaterThan(200);
  });

  test('shared/domain imports nothing outside itself but typebox, in which its events are written', () => {
    expect(
      offenders(
        within('shared/domain'),
        ({ target }) => within('shared/domain')(target) || target === 'typebox',
      ),
    ).toEqual([]);
  });

  test('shared imports only shared', () => {
    expect(
      offenders(within('shared'), ({ target }) => !isOurs(target) || within('shared')(target)),
    ).toEqual([]);
  });

  test('shared imports no library that does input or output', () => {
    const allowed = new Set([
      'typebox',
      'ajv',
      'pino',
      'canonicalize',
      'lru-cache',
      'node:crypto',
      'node:events',
      'node:timers',
    ]);
    expect(
      offenders(within('shared'), ({ target }) => isOurs(target) || allowed.has(packageOf(target))),
    ).toEqual([]);
  });

  test('infra imports only shared and its own technology', () => {
    const folder = (file: string): string => file.split('/').slice(0, 2).join('/');
    expect(
      offenders(
        within('infra'),
        ({ file, target }) =>
          !isOurs(target) ||
          within('shared')(target) ||
          within(folder(file))(target) ||
          // A local server is started with the same client as is used with others.
          (within('infra/local')(file) && within('infra/kafka')(target)),
      ),
    ).toEqual([]);
  });

  test('only services/compose chooses adapters', () => {
    expect(
      offenders(
        (file) => within('services')(file) && !within('services/compose')(file),
        ({ target }) => !within('infra')(target),
      ),
    ).toEqual([]);
  });

  test('nothing that is shipped imports a test', () => {
    expect(
      offenders(
        () => true,
        ({ target }) => !within('test')(target),
      ),
    ).toEqual([]);
  });

  test('a library that infra wraps is used in one folder of infra and nowhere else', () => {
    const shared = new Set(['typebox', 'ajv', 'pino', 'lru-cache']);
    const users = new Map<string, Set<string>>();
    for (const { file, target } of imports) {
      if (isOurs(target) || target.startsWith('node:') || shared.has(packageOf(target))) continue;
      const folder = within('infra')(file)
        ? file.split('/').slice(0, 2).join('/')
        : file.split('/')[0]!;
      users.set(packageOf(target), (users.get(packageOf(target)) ?? new Set()).add(folder));
    }
    expect(
      [...users]
        .filter(([, folders]) => folders.size > 1)
        .map(([name, folders]) => `${name}: ${[...folders].join(', ')}`),
    ).toEqual([]);
  });
});
