import { expect, test } from '@jest/globals';
import {
  diffText,
  toBlocks,
  type DiffLine,
  type DiffPiece,
} from '../../../../../../../services/console/src/components/diff/diffText.ts';

const textOf = (parts: readonly DiffPiece[], without: DiffPiece['op']): string =>
  parts
    .filter(({ op }) => op !== without)
    .map(({ text }) => text)
    .join('');
const lineText = (line: DiffLine): string => line.map(({ text }) => text).join('');

const PAIRS: readonly (readonly [string, string])[] = [
  ['', ''],
  ['', 'a'],
  ['a\n', ''],
  ['one\ntwo\nthree', 'one\n2\nthree'],
  ['one\ntwo\n', 'one\ntwo'],
  ['a b c', 'a c\nd'],
  ['\n\n', '\n'],
  ['x\r\ny', 'x\ny'],
  ['same\n<b>old</b>\nend', 'same\n<b>new</b>\nmore\nend'],
];

test.each(PAIRS)('the parts of %j and %j make up both texts', (before, after) => {
  const parts = diffText(before, after);
  expect(textOf(parts, 'added')).toBe(before);
  expect(textOf(parts, 'removed')).toBe(after);
});

test.each(PAIRS)('the blocks of %j and %j have every line of both, numbered', (before, after) => {
  const blocks = toBlocks(diffText(before, after));
  const linesOf = (text: string): string[] =>
    text === '' ? [] : text.replace(/\n$/, '').split('\n');
  expect(blocks.flatMap((block) => block.before.lines.map(lineText))).toEqual(linesOf(before));
  expect(blocks.flatMap((block) => block.after.lines.map(lineText))).toEqual(linesOf(after));
  let [line, lineAfter] = [1, 1];
  for (const { isChanged, ...block } of blocks) {
    expect([block.before.first, block.after.first]).toEqual([line, lineAfter]);
    if (!isChanged) expect(block.before.lines).toEqual(block.after.lines);
    line += block.before.lines.length;
    lineAfter += block.after.lines.length;
  }
});

test('marks the words of a line that differ, and leaves other lines unchanged', () => {
  expect(toBlocks(diffText('Be kind.\nBe brief.\n', 'Be kind.\nBe exact.\n'))).toEqual([
    expect.objectContaining({ isChanged: false }),
    {
      isChanged: true,
      before: {
        first: 2,
        lines: [
          [
            { op: 'same', text: 'Be ' },
            { op: 'removed', text: 'brief' },
            { op: 'same', text: '.' },
          ],
        ],
      },
      after: {
        first: 2,
        lines: [
          [
            { op: 'same', text: 'Be ' },
            { op: 'added', text: 'exact' },
            { op: 'same', text: '.' },
          ],
        ],
      },
    },
  ]);
});

test('shows texts without a common line as replaced when comparing them takes too long', () => {
  const text = (word: string): string =>
    Array.from({ length: 60_000 }, (_, at) => `${word}${at}`).join('\n');
  const [before, after] = [text('a'), text('b')];
  const parts = diffText(before, after);
  expect(textOf(parts, 'added')).toBe(before);
  expect(textOf(parts, 'removed')).toBe(after);
});
