/**
 * The pages say what the code does: options, operations and errors are compared, links and file
 * names are followed.
 */
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from '@jest/globals';
import { apiFeatures, routes } from '../../services/api/features.ts';
import type { Access } from '../../services/api/http/route.ts';
import { ClientConfigSchema, ConfigSchema } from '../../shared/lib/config/config.ts';
import { eventSchemas } from '../../shared/eventlog/eventTypes.ts';
import { LIMITS } from '../../shared/limits.ts';
import { codeBlocks } from '../support/docs/commands.ts';
import { configurationPage, documentedOptions } from '../support/docs/configurationPage.ts';
import { limitDocs, limitsPage } from '../support/docs/limitsPage.ts';
import { anchorsOf, chapters, codeSpans, linksOf, tableRows } from '../support/docs/markdown.ts';
import { projectFiles, root, textOf } from '../support/docs/projectFiles.ts';

const files = projectFiles();
const pages = files.filter((path) => path.endsWith('.md'));

/** The rows of a chapter's tables. */
function rowsOf(page: string, heading: string): string[][] {
  const chapter = chapters(textOf(page), 2).find((found) => found.heading === heading);
  return tableRows(chapter?.text ?? '');
}

test('the README fits on a page', () => {
  expect(textOf('README.md').split('\n').length).toBeLessThanOrEqual(121);
});

test('docs/configuration.md is what npm run options writes, and lists every option', () => {
  expect(textOf('docs/configuration.md')).toBe(configurationPage());
  const all = { ...ConfigSchema.properties, ...ClientConfigSchema.properties };
  expect(documentedOptions().toSorted()).toEqual(Object.keys(all).toSorted());
});

test('docs/api.md lists every operation with the scope that it takes', () => {
  const scope = (access: Access): string =>
    ({ open: 'open', key: 'any key' })[access as string] ?? `\`${access}\``;
  const listed = tableRows(textOf('docs/api.md').split('\n## ')[0]!).flatMap(
    ([access, operations]) => codeSpans(operations!).map((operation) => `${operation}: ${access}`),
  );
  const served = routes.map(
    ({ method, path, access }) => `${method.toUpperCase()} ${path}: ${scope(access)}`,
  );
  expect(listed.toSorted()).toEqual(served.toSorted());
});

test('docs/api.md lists every error code under its status', () => {
  const listed = rowsOf('docs/api.md', 'Errors').flatMap(([status, codes]) =>
    codeSpans(codes!).map((code) => `${status} ${code}`),
  );
  const answered = Object.entries(apiFeatures.errorResponses)
    .filter(([code, { status }]) => status !== 500 || code === 'internal_error')
    .map(([code, { status }]) => `${status} ${code}`);
  expect(listed.toSorted()).toEqual(answered.toSorted());
});

test('docs/limits.md is what npm run limits writes', () => {
  expect(textOf('docs/limits.md')).toBe(limitsPage());
});

test('every fixed limit has a doc that the page is written from, and says what it limits where it says what is beyond', () => {
  const docs = limitDocs();
  const limits = Object.entries(LIMITS).flatMap(([group, values]) =>
    Object.keys(values).map((name) => `${group}.${name}`),
  );
  expect(docs.map(({ name }) => name).toSorted()).toEqual(limits.toSorted());
  expect(docs.filter(({ what, beyond }) => beyond !== undefined && what === '')).toEqual([]);
});

test('docs/architecture.md lists every type of event', () => {
  const listed = rowsOf('docs/architecture.md', 'The events').flatMap(([types]) =>
    codeSpans(types!),
  );
  const types = eventSchemas.map((schema) => schema.properties.type.const);
  expect(listed.toSorted()).toEqual(types.toSorted());
});

test('every link within the project leads to a file, and to a heading of it where it names one', () => {
  const broken = pages.flatMap((page) =>
    linksOf(textOf(page))
      .filter((target) => !/^\w+:/.test(target))
      .filter((target) => {
        const [path, anchor] = target.split('#') as [string, string | undefined];
        const file = path === '' ? page : normalize(join(dirname(page), path));
        if (!existsSync(join(root, file))) return true;
        return anchor !== undefined && !anchorsOf(textOf(file)).includes(anchor);
      })
      .map((target) => `${page}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test('every file that a page names is there', () => {
  const isFile = /^[\w.-]+(?:\/[\w.-]+)*\.(?:ts|mjs|sql|yaml|json|cfg|sh|md|txt)$/;
  const gone = pages.flatMap((page) =>
    codeSpans(textOf(page))
      .filter((span) => isFile.test(span))
      .filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`)))
      .map((name) => `${page}: ${name}`),
  );
  expect(gone).toEqual([]);
});

/** The pages of the product: without the changelog and the notes of the tests. */
const productPages = pages.filter((path) => path !== 'CHANGELOG.md' && !path.startsWith('test/'));

/** What `wc -w` counts. */
const wordsOf = (page: string): string[] => textOf(page).match(/\S+/g) ?? [];

test('the documentation has at most 30,000 words, and the changelog 1,500', () => {
  expect(productPages.flatMap(wordsOf).length).toBeLessThanOrEqual(30_000);
  expect(wordsOf('CHANGELOG.md').length).toBeLessThanOrEqual(1_500);
});

/** A line of a shell. */
const COMMAND = /^ *(?:[A-Z_]+=\S+ )*(?:npm|npx|node|curl|python3?|docker|kubectl|openssl|sh) /m;

test('commands stand in blocks that test/slow/docs runs, but for those that it cannot', () => {
  const written = productPages.flatMap((page) =>
    codeBlocks(textOf(page)).map(({ language, text }) => ({ page, language, text })),
  );
  const languages = new Set(written.map(({ language }) => language));
  expect([...languages].toSorted()).toEqual(['js', 'json', 'sh', 'text', 'yaml']);
  // Servers and programs that are not here, and values that only the reader has.
  const cannotRun =
    /docker|kubectl|esdb|kafka|postgres:|npx|pip |mvn|go run|4318|harbor|example.com|<[a-z]+>/i;
  const unmarked = written.filter(
    ({ language, text }) => language === 'text' && COMMAND.test(text) && !cannotRun.test(text),
  );
  expect(unmarked).toEqual([]);
  const indented = productPages.filter((page) =>
    (textOf(page).match(/\n\n {4}\S.*/g) ?? []).some((line) => COMMAND.test(line.trim())),
  );
  expect(indented).toEqual([]);
});
