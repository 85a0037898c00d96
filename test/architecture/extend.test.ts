/**
 * The recipes of docs/extend.md: each follows a sample that the code has. Its table, and the files
 * that it says need no change, are together the files that name the sample.
 */
import { describe, expect, test } from '@jest/globals';
import { chapters, codeSpans, tableRows } from '../support/docs/markdown.ts';
import { projectFiles, textOf } from '../support/docs/projectFiles.ts';

const PAGE = 'docs/extend.md';

/**
 * Whatever has to follow a change: the product, its examples and the pages about it. The console
 * follows the API alone.
 */
const texts = ['services', 'shared', 'infra', 'examples', 'docs']
  .flatMap((folder) => projectFiles(folder))
  .filter(
    (path) => path !== PAGE && !path.endsWith('README.md') && !path.startsWith('services/console/'),
  )
  .map((path) => ({ path, text: textOf(path) }));

/** The paths of files that name one of the words, each as a whole word. */
function filesNaming(words: readonly string[], within = ''): string[] {
  const pattern = words.map((word) => word.replaceAll(/\W/g, '\\$&')).join('|');
  const named = new RegExp(`(?<!\\w)(?:${pattern})(?!\\w)`);
  return texts
    .filter(({ path, text }) => path.startsWith(within) && named.test(text))
    .map(({ path }) => path);
}

const paths = (text: string): string[] => codeSpans(text).filter((span) => span.includes('/'));

const paragraph = (text: string, opening: string): string =>
  text.split('\n\n').find((part) => part.trimStart().startsWith(opening)) ?? '';

const recipes = chapters(textOf(PAGE), 2)
  .map(({ heading, text }) => ({
    heading,
    follows: codeSpans(paragraph(text, 'Follow ')),
    touched: tableRows(text.split('\n### ')[0]!).flatMap(([file]) => paths(file!)),
    untouched: paths(paragraph(text, 'Needs no change: ')),
  }))
  .filter(({ follows }) => follows.length > 0);

describe('the recipes of docs/extend.md', () => {
  test('are there for what is added most', () => {
    expect(recipes.map(({ heading }) => heading)).toEqual([
      'An event type',
      'A command',
      'A column of the read models',
      'A route',
      'An error code',
      'An option',
      'A tool',
      'A store',
    ]);
  });

  test.each(recipes)('$heading: each word of the sample is in the code', ({ follows }) => {
    expect(follows.filter((word) => filesNaming([word]).length === 0)).toEqual([]);
  });

  test.each(recipes)('$heading: the list is the files that name the sample', (recipe) => {
    const { follows, touched, untouched } = recipe;
    const listed = [...touched, ...untouched];
    const measured = filesNaming(follows);
    expect({
      'name the sample, and are not listed': measured.filter((path) => !listed.includes(path)),
      'are listed, and do not name the sample': listed.filter((path) => !measured.includes(path)),
    }).toEqual({
      'name the sample, and are not listed': [],
      'are listed, and do not name the sample': [],
    });
  });
});

describe('the ports of docs/extend.md', () => {
  const listed = chapters(textOf(PAGE), 3)
    .filter(({ heading }) => heading === 'Ports and their suites')
    .flatMap(({ text }) => tableRows(text))
    .map((cells) => cells.map(codeSpans));

  test('are all of shared/ports but time and ids, and those that one feature keeps beside it', () => {
    const ports = projectFiles('shared/ports').filter((path) => !path.endsWith('/clock.ts'));
    const listedPorts = listed.map(([port]) => port![0]!);
    expect(listedPorts.filter((path) => path.startsWith('shared/ports/')).toSorted()).toEqual(
      ports,
    );
    expect(listedPorts.filter((path) => !projectFiles('shared').includes(path))).toEqual([]);
  });

  test('have a suite each, and the adapters that implement them', () => {
    const tests = projectFiles('test');
    const wrong = listed.flatMap(([port, names, suite, adapters]) => {
      const folders = filesNaming(names!, 'infra/').map((path) => path.split('/', 2).join('/'));
      const found = [...new Set(folders)].join(', ');
      return tests.includes(suite![0]!) && found === adapters!.join(', ')
        ? []
        : [`${port![0]}: ${suite![0]}; ${found}`];
    });
    expect(wrong).toEqual([]);
  });
});
