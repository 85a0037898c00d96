/**
 * What can be counted of the structure: files per folder, names that are exported twice, tests that
 * mirror no file, and files that are too small or too long. structure.exceptions.ts lists and
 * explains the exceptions.
 */
import { dirname } from 'node:path';
import { expect, test } from '@jest/globals';
import { projectFiles, textOf } from '../support/docs/projectFiles.ts';
import { EXCEPTIONS, type Exception } from './structure.exceptions.ts';

const MAX_FILES = 15;
const MAX_LINES = 400;
const SMALL_LINES = 40;

/** Files that every feature, list of features or thread has, however small. */
const ROLE =
  /\/(?:manifest|features|events|decider|projection|tables|limits|errors|routes|schemas|presenter)\.ts$|Worker\.ts$/;
/** Schemas of the API are named after the type that they show. */
const API_SCHEMAS = /^services\/api\/.*(?:[sS]chemas|Health)\.ts$/;

const product = ['services', 'shared', 'infra']
  .flatMap((folder) => projectFiles(folder))
  .filter((path) => /\.tsx?$/.test(path));
const texts = new Map(product.map((path) => [path, textOf(path)]));
const linesOf = (path: string): number => texts.get(path)!.split('\n').length - 1;

const IMPORT = /(?:from|import\(|new URL\()\s*'(\.{0,2}[^']*\.tsx?)'/g;
const importers = new Map<string, Set<string>>();
for (const [path, text] of texts)
  for (const [, imported] of text.matchAll(IMPORT)) {
    const target = new URL(imported!, `file:///${path}`).pathname.slice(1);
    importers.set(target, (importers.get(target) ?? new Set<string>()).add(path));
  }

const EXPORT =
  /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm;
/** The names that a file declares and exports; a schema and its type share one. */
const exportsOf = (path: string): string[] => [
  ...new Set([...texts.get(path)!.matchAll(EXPORT)].map(([, name]) => name!)),
];

function expectOnly(violations: readonly string[], exceptions: readonly Exception[]): void {
  const listed = exceptions.flatMap(({ items }) => items);
  expect({
    'violations that are not listed': violations.filter((item) => !listed.includes(item)),
    'exceptions that no longer apply': listed.filter((item) => !violations.includes(item)),
  }).toEqual({ 'violations that are not listed': [], 'exceptions that no longer apply': [] });
}

test(`a folder has at most ${MAX_FILES} files`, () => {
  const folders = [...Map.groupBy(product, (path) => dirname(path))];
  const full = folders.filter(([, files]) => files.length > MAX_FILES);
  expectOnly(
    full.map(([folder]) => folder),
    EXCEPTIONS.fullFolders,
  );
});

/** The console is a separate program, which knows the service by its API alone. */
const isConsole = (path: string): boolean => path.startsWith('services/console/');

test('no name is exported by two files', () => {
  const named = product.filter((path) => !API_SCHEMAS.test(path));
  const programs = [named.filter(isConsole), named.filter((path) => !isConsole(path))];
  const twice = programs.flatMap((paths) =>
    [...Map.groupBy(paths.flatMap(exportsOf), (name) => name)].filter(
      ([, same]) => same.length > 1,
    ),
  );
  expectOnly(
    twice.map(([name]) => name),
    EXCEPTIONS.namesTwice,
  );
});

test('a unit test mirrors a file: test/unit/<path of the file>[.<aspect>].test.ts', () => {
  const mirrored = (path: string): string =>
    path.replace(/^test\/unit\//, '').replace(/(?:\.\w+)?\.test\.ts$/, '.ts');
  const unmatched = projectFiles('test/unit').filter(
    (path) => path.endsWith('.test.ts') && !texts.has(mirrored(path)),
  );
  expectOnly(unmatched, EXCEPTIONS.testsWithoutFile);
});

test(`a file of up to ${SMALL_LINES} lines serves more than one file of its folder`, () => {
  // A component is a file, however small.
  const modules = product.filter((path) => path.endsWith('.ts'));
  const single = modules.filter((path) => {
    const [importer, ...others] = importers.get(path) ?? [];
    if (importer === undefined || others.length > 0) return false;
    const sameTree =
      importer.startsWith(`${dirname(path)}/`) || path.startsWith(`${dirname(importer)}/`);
    return sameTree && linesOf(path) <= SMALL_LINES && !ROLE.test(path);
  });
  expectOnly(single, EXCEPTIONS.smallFiles);
});

test(`a file has at most ${MAX_LINES} lines`, () => {
  expectOnly(
    product.filter((path) => linesOf(path) > MAX_LINES),
    EXCEPTIONS.longFiles,
  );
});

/** All lines, as `wc -l` counts them. The component for other pages is a separate program. */
const CONSOLE_LINES = { src: 8_000, embed: 700 };

test('the console and the component stay small', () => {
  for (const [folder, most] of Object.entries(CONSOLE_LINES)) {
    const text = projectFiles(`services/console/${folder}`).map(textOf).join('');
    expect(text.split('\n').length - 1).toBeLessThanOrEqual(most);
  }
});
