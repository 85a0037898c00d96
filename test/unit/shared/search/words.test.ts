import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { LIMITS } from '../../../../shared/limits.ts';
import { parseSearchWords, extractWords } from '../../../../shared/search/words.ts';

const words = (...texts: string[]): string[] => [...extractWords(texts)];
const sought = (text: string): string[] => [...parseSearchWords(text)];

test('words are letters and digits, each once, in lower case', () => {
  expect(words('The cat, the HAT: x2 foo_bar don’t')).toEqual([
    'the',
    'cat',
    'hat',
    'x2',
    'foo',
    'bar',
    'don',
    't',
  ]);
  expect(words('?! … 🎉', '')).toEqual([]);
});

test('accents, compatible forms and composed letters make no difference', () => {
  expect(words('Crème brûlée ﬁne ＡＢＣ ①')).toEqual(['creme', 'brulee', 'fine', 'abc', '1']);
  expect(words('e\u0301')).toEqual(words('\u00e9'));
  expect(words('İstanbul')).toEqual(['istanbul']);
  // What is no accent stays: these are other letters.
  expect(words('が')).not.toEqual(words('か'));
  expect(words('й')).toEqual(words('и\u0306'));
});

test('signs that a word can be written without make no difference', () => {
  expect(words('مُحَمَّد שָׁלוֹם')).toEqual(words('محمد שלום'));
  expect(words('⚠️Warning ❤️love 1️⃣ 葛\u{e0100}城')).toEqual(words('Warning love 1 葛城'));
  // Of other scripts they are vowels, which make other words.
  for (const [one, other] of [
    ['कि', 'की'],
    ['กิน', 'กัน'],
  ])
    expect(words(one!)).not.toEqual(words(other!));
  expect([...sought('⚠️'), ...sought('\u0e34'), ...sought('\ufe0f')]).toEqual([]);
});

test('what is written without spaces is found by any piece of it', () => {
  const text = words('東京タワーabc한국어');
  for (const piece of ['東', '京タ', 'タワー', '東京タワー', 'abc', '국어', '東京タワーabc'])
    expect(text).toEqual(expect.arrayContaining(sought(piece)));
  expect(text).not.toEqual(expect.arrayContaining(sought('京東')));
  expect(sought('東京タワー')).toEqual(['東京', '京タ', 'タワ', 'ワー']);
  expect(sought('𠮷野')).toEqual(['𠮷野']);
});

test('words of a turn, their lengths and what is read of a text are bounded', () => {
  const { textCharacters, wordCharacters, wordsOfTurn } = LIMITS.search;
  expect(words('x'.repeat(wordCharacters + 9))).toEqual(['x'.repeat(wordCharacters)]);
  const many = Array.from({ length: wordsOfTurn + 5 }, (_, n) => `w${n}`).join(' ');
  expect(words('first', many)).toHaveLength(wordsOfTurn);
  expect(words(`${'. '.repeat(textCharacters / 2)}late`, 'output')).toEqual(['output']);
});

test('a long input leaves half of the words to the output, and what one does not need is for the other', () => {
  const { wordsOfTurn } = LIMITS.search;
  const many = (prefix: string) =>
    Array.from({ length: wordsOfTurn }, (_, n) => `${prefix}${n}`).join(' ');
  const countOf = (found: string[], prefix: string) =>
    found.filter((word) => word.startsWith(prefix)).length;
  const both = words(many('in'), many('out'));
  expect([countOf(both, 'in'), countOf(both, 'out')]).toEqual([wordsOfTurn / 2, wordsOfTurn / 2]);
  for (const found of [words(many('in'), 'out'), words('out', many('in'))])
    expect([countOf(found, 'in'), countOf(found, 'out')]).toEqual([wordsOfTurn - 1, 1]);
  expect(words(many('in'))).toHaveLength(wordsOfTurn);
  // Different characters, so that each and each pair is another word.
  const chinese = String.fromCodePoint(...Array.from({ length: 2_300 }, (_, n) => 0x4e00 + n));
  expect(words(chinese, '退款')).toEqual(expect.arrayContaining(sought('退款')));
});

test('whatever is sought as it was written is found', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.string({ unit: 'binary', maxLength: 40 }),
      (before, text) => {
        const found = extractWords([`${before} ${text}`]);
        for (const word of parseSearchWords(text)) expect(found).toContain(word);
      },
    ),
  );
});
