import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { LIMITS } from '../../../../shared/limits.ts';
import {
  doAllSteps,
  extractPrefixes,
  extractWords,
  isShortPrefix,
  parseSearchTerms,
} from '../../../../shared/search/words.ts';

const words = (...texts: string[]): string[] => [...doAllSteps(extractWords(texts))];
/** A number in letters: with digits, a word would be a compound. */
const letters = (n: number): string =>
  String(n).replaceAll(/\d/g, (digit) => 'abcdefghij'[Number(digit)]!);
const sought = (text: string): string[] => [...parseSearchTerms(text)];

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

test.each([
  ['Turnlog™ is good', ['turnlog', 'is', 'tm']],
  ['№5 and №７', ['no', '5', '7']],
  ['①Install ②Run', ['1', 'install', '2', 'run']],
  ['½cup, 2½ cups', ['cup', '1', '2', 'cups']],
  ['❶first', ['first']],
  ['㏒x', ['log', 'x']],
])('words next to symbols are found: %s', (text, expected) => {
  expect(words(text)).toEqual(expect.arrayContaining(expected));
});

test('raised and lowered digits belong to their word, which is found without them, too', () => {
  expect(words('H₂O')).toContain(sought('H2O')[0]);
  expect(sought('H₂O')).toEqual(['h2o']);
  expect(words('Turnlog²')).toEqual(['turnlog2', 'turnlog']);
});

test.each([
  ['getUserName', ['getusername', 'get', 'user', 'name']],
  ['HTTPServer', ['httpserver', 'http', 'server']],
  ['invoice4711', ['invoice4711', 'invoice', '4711']],
  ['ÜberÄnderung', ['uberanderung', 'uber', 'anderung']],
  ['Donau\u00addampf\u00adschiff', ['donaudampfschiff', 'donau', 'dampf', 'schiff']],
  ['user_name-of.it', ['user', 'name', 'of', 'it']],
  ['x2 4th H2O', ['x2', '4th', 'h2o', 'th']],
])('a compound is found as a whole and by its parts: %s', (text, expected) => {
  expect(words(text)).toEqual(expected);
});

test('parts are bounded, and displace no word', () => {
  const { wordsOfTurn, partsOfTurn } = LIMITS.search;
  const many = Array.from({ length: wordsOfTurn }, (_, n) => `aa${10_000 + n}`);
  const found = words(many.join(' '));
  expect(found.slice(0, wordsOfTurn)).toEqual(many);
  expect(found).toHaveLength(wordsOfTurn + partsOfTurn);
});

test('a compound in a query is one word', () => {
  expect(sought('getUserName invoice4711')).toEqual(['getusername', 'invoice4711']);
});

test('words are found by their beginnings of 3 characters or more', () => {
  const prefixes = extractPrefixes(words('invoices in 東京都 42 été'));
  expect([...prefixes].toSorted()).toEqual(
    ['ete*', 'inv*', 'invo*', 'invoi*', 'invoic*', 'invoice*', 'invoices*'].toSorted(),
  );
  expect(sought('inv* Étés* ＩＮＶＯ*')).toEqual(['inv*', 'etes*', 'invo*']);
  expect(sought('東京*')).toEqual(['東京']);
  expect(sought('2026* * a* **')).toEqual(['2026*', 'a*']);
  expect(sought('2026* a*').map(isShortPrefix)).toEqual([false, true]);
});

test('a star between letters or digits is an operator, and no beginning of a word', () => {
  expect(sought('12*34 2**8 x*y x*ö')).toEqual(['12', '34', '2', '8', 'x', 'y', 'o']);
  expect(sought('**bold** (inv*)')).toEqual(['bold*', 'inv*']);
});

test('a beginning is compared up to its limit', () => {
  const { longestPrefix } = LIMITS.search;
  expect(sought('internationalis*')).toEqual(['internat*']);
  const lengths = [...extractPrefixes(['internationalisation'])].map((term) => term.length - 1);
  expect(Math.max(...lengths)).toBe(longestPrefix);
});

test('beginnings of a turn are bounded, and short ones of all words come first', () => {
  const { wordsOfTurn, prefixesOfTurn } = LIMITS.search;
  const many = Array.from(
    { length: wordsOfTurn },
    (_, n) => `${n}`.padStart(4, '0') + 'x'.repeat(9),
  );
  const prefixes = extractPrefixes(many);
  expect(prefixes.size).toBe(prefixesOfTurn);
  for (const word of many) expect(prefixes).toContain(`${word.slice(0, 5)}*`);
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

test('of more marks than a language has, the first count, so that no number of them takes long', () => {
  // In descending order, which normalization sorts in quadratic time.
  const marked = (count: number): string => `a${'\u1dc0'.repeat(count)}${'\u1dc2'.repeat(count)}`;
  const began = process.threadCpuUsage().user;
  const found = words(marked(32_767));
  expect(process.threadCpuUsage().user - began).toBeLessThan(300_000);
  expect(found).toEqual(words(`a${'\u1dc0'.repeat(30)}`));
  expect(sought(marked(100))).toEqual(found);
  expect(words(marked(15))).not.toEqual(found);
  expect(words(`${marked(100)}b`)).toEqual([`${found[0]}b`]);
});

test('every character that a normalization moves counts as a mark', () => {
  /** Has the highest class of all, so that others with a class move before it. */
  const last = '\u0345';
  for (let codePoint = 0; codePoint <= 0x10_ffff; codePoint += 1) {
    const character = String.fromCodePoint(codePoint);
    const alone = character.normalize('NFKD');
    const moves = character === last || `${last}${character}`.normalize('NFKD') !== last + alone;
    if (moves) expect(words(`a${character.repeat(40)}`)).toEqual(words(`a${character.repeat(30)}`));
  }
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
  const many = Array.from({ length: wordsOfTurn + 5 }, (_, n) => `w${letters(n)}`).join(' ');
  expect(words('first', many)).toHaveLength(wordsOfTurn);
  expect(words(`${'. '.repeat(textCharacters / 2)}late`, 'output')).toEqual(['output']);
});

test('a long input leaves half of the words to the output, and what one does not need is for the other', () => {
  const { wordsOfTurn } = LIMITS.search;
  const many = (prefix: string) =>
    Array.from({ length: wordsOfTurn }, (_, n) => `${prefix}${letters(n)}`).join(' ');
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

/** A text as long as the limit, of one that is repeated. */
const long = (text: string): string =>
  text.repeat(LIMITS.search.textCharacters / text.length).slice(0, LIMITS.search.textCharacters);

test.each([
  ['words with accents', 'Über ', 30],
  ['a script without spaces', '漢字', 30],
  ['symbols that stand for words', '\u3316', 500],
  ['letters that stand for several words', '\ufdfa', 500],
  ['one word without any place to cut', 'éÈ1', 9],
])('%s are extracted in many steps from a long text', (_, text, least) => {
  let steps = 0;
  for (const _step of extractWords([long(text), long(text)])) steps += 1;
  expect(steps).toBeGreaterThanOrEqual(least);
});

test('a long text has the words of its parts', () => {
  const characters = fc.constantFrom(
    ...Array.from('aBé1²Σ.ー漢ガか한™*\u0301\u3099\u11a8\u00ad\ufdfa々𝚺ŉ'),
  );
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: characters, minLength: 1, maxLength: 6 }), {
        minLength: 1,
        maxLength: 6,
      }),
      fc.nat({ max: 40 }),
      (parts, offset) => {
        const once = `${parts.join(' ')} `;
        // What is beyond the limit is not read, also of a word.
        const most = Math.floor((LIMITS.search.textCharacters - offset - 1) / once.length);
        const all = `${'x'.repeat(offset)} ${once.repeat(Math.min(2_000, most))}`;
        const expected = parts.flatMap((part) => words(part));
        expect(new Set(words(all))).toEqual(new Set([...words('x'.repeat(offset)), ...expected]));
      },
    ),
    { numRuns: 30 },
  );
});

test('a long text without spaces has the words of a short one', () => {
  const characters = fc.constantFrom(...Array.from('漢字かなガか한글々ーΣ1™\u3099\u11a8'));
  fc.assert(
    fc.property(fc.string({ unit: characters, minLength: 1, maxLength: 12 }), (part) => {
      const most = Math.floor(LIMITS.search.textCharacters / part.length);
      expect(new Set(words(part.repeat(most)))).toEqual(new Set(words(part.repeat(100))));
    }),
    { numRuns: 30 },
  );
});

test('whatever is sought as it was written is found', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.string({ unit: 'binary', maxLength: 40 }),
      (before, text) => {
        const found = doAllSteps(extractWords([`${before} ${text}`]));
        const terms = new Set([...found, ...extractPrefixes(found)]);
        for (const term of parseSearchTerms(text))
          if (!isShortPrefix(term)) expect(terms).toContain(term);
      },
    ),
  );
});
