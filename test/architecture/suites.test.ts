/** Each test file belongs to one jest configuration, and .ci/run runs each configuration. */
import { matchesGlob } from 'node:path';
import { expect, test } from '@jest/globals';
import { projectFiles, textOf } from '../support/docs/projectFiles.ts';

/** Runs suites of other configurations again, on other versions of EventStoreDB. */
const VERSIONS = 'test/jest.versions.config.json';

const configs = projectFiles('test').filter((path) => /^test\/jest\..*json$/.test(path));
const suites = projectFiles('test').filter((path) => path.endsWith('.test.ts'));

const patternsOf = (config: string): string[] =>
  (JSON.parse(textOf(config)) as { testMatch: string[] }).testMatch.map((pattern) =>
    pattern.replace('<rootDir>/', ''),
  );
const suitesOf = (config: string): string[] =>
  suites.filter((path) => patternsOf(config).some((pattern) => matchesGlob(path, pattern)));

/** The scripts of package.json that .ci/run runs. */
const ciRuns = [...textOf('.ci/run').matchAll(/^(?!#).*\bsuite ["\w$-]+ ([\w:]+)/gm)].map(
  ([, script]) => script!,
);

test('one configuration runs a test file', () => {
  const runs = configs.filter((path) => path !== VERSIONS).flatMap(suitesOf);
  expect(runs.toSorted()).toEqual(suites.toSorted());
});

test('test:versions runs suites that exist', () => {
  const unmatched = patternsOf(VERSIONS).filter(
    (pattern) => !suites.some((path) => matchesGlob(path, pattern)),
  );
  expect([suitesOf(VERSIONS).length > 0, unmatched]).toEqual([true, []]);
});

test('.ci/run runs each configuration, and only test:versions more than once', () => {
  const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
  const configOf = (script: string): string | undefined =>
    /--config (\S+)/.exec(scripts[script] ?? '')?.[1];
  const run = ciRuns.map(configOf);
  expect(new Set(run)).toEqual(new Set(configs));
  const once = run.filter((config) => config !== VERSIONS);
  expect(once).toEqual([...new Set(once)]);
});
