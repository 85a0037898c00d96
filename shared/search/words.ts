/**
 * Extracts the words by which a text can be found. Pure and without a dictionary, so that every
 * process and every release of Node.js extracts the same words.
 */
import { KIB } from '../lib/units.ts';
import { LIMITS } from '../limits.ts';

const { textCharacters, wordCharacters, wordsOfTurn, partCharacters, partsOfTurn } = LIMITS.search;
const { prefixCharacters, longestPrefix, prefixesOfTurn } = LIMITS.search;

const ASCII = /^[\0-\x7f]*$/;
/** Marks the boundaries between the parts of a compound. */
const BOUNDARY = '\u007f';
/** A run that is one word without parts, as most are. */
const PLAIN_RUN = /^[a-z0-9]+$/;
/** Runs of letters and digits, and a `*` at the end of a word; the one in `12*34` is an operator. */
const ASCII_WORDS = /([a-z0-9][a-z0-9\u007f]*)(\*(?![*\u007f]*[a-z0-9]))?/g;
const WORDS = /([\p{L}\p{N}][\p{L}\p{N}\p{M}\u007f]*)(\*(?![*\u007f]*[\p{L}\p{N}]))?/gu;
/** Symbols and numbers that stand for other characters, as ™ for tm and ½ for 1⁄2. */
const SYMBOLS = /[\p{So}[\p{No}--[\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089]]]/gv;
/** Raised and lowered digits, which belong to their word: H₂O. */
const RAISED = /[\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089]+/g;
/** Soft hyphens and other invisible characters inside of words. */
const INVISIBLE = /\u00ad|\u200c|\u200d|\u2060/g;
/** The last character before a boundary: `userName`, `PDFReader`, `invoice4711`, `4th`. */
const ASCII_BOUNDARIES = /[a-z](?=[A-Z\d])|[A-Z](?=[A-Z][a-z]|\d)|\d(?=[A-Za-z])/g;
const BOUNDARIES =
  /\p{Ll}\p{M}*(?=[\p{Lu}\p{Nd}])|\p{Lu}\p{M}*(?=\p{Lu}\p{Ll}|\p{Nd})|[\p{L}--[\p{Lu}\p{Ll}]]\p{M}*(?=\p{Nd})|\p{Nd}(?=\p{L})/gv;
/**
 * Marks that do not change the meaning of a word, after NFKD decomposition: accents, signs of
 * Arabic and Hebrew, and selectors for the presentation of characters and emoji.
 */
const MARKS =
  /[[\u0300-\u036f][\p{Mn}&&[\p{Script_Extensions=Arabic}\p{Script_Extensions=Hebrew}]]\u20e3\ufe00-\ufe0f\u{e0100}-\u{e01ef}]+/gv;
/** Marks, and the only other characters that NFKD makes nonstarters of: voiced sound marks of half width. */
const MARK = String.raw`[\p{M}\uff9e\uff9f]`;
/**
 * Marks after the first 30 in a row, the most in Unicode's Stream-Safe Text Format (UAX #15): no language
 * writes more, and the time of a normalization grows with the square of their number. A match begins
 * only where the marks begin.
 */
const EXCESS_MARKS = new RegExp(`(${MARK}(?<!${MARK}{2})${MARK}{29})${MARK}+`, 'gu');
/** Scripts written without spaces between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc]+/gu;
const HAS_UNSPACED = new RegExp(UNSPACED.source, 'u');
const ENDS_UNSPACED = new RegExp(`${UNSPACED.source}$`, 'u');

/** Characters, and words, that are processed in one step of some milliseconds, or 50 in scripts without spaces. */
const CHARS_AT_ONCE = 16 * KIB;
const WORDS_AT_ONCE = 1_024;

/** Work in steps: the caller decides what happens between them. */
type Steps<Result> = Generator<undefined, Result>;

/** Does all steps at once. */
export function doAllSteps<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

type Pass = (text: string) => string;
const lowerCase: Pass = (text) => text.toLowerCase();

/** Marks the boundaries inside of compounds, and converts to lower case. */
const ASCII_PASSES: readonly Pass[] = [
  (text) => text.replace(ASCII_BOUNDARIES, `$&${BOUNDARY}`),
  lowerCase,
];
/** The same, with symbols apart from the words next to them, compatible forms unified, and no marks. */
const PASSES: readonly Pass[] = [
  (text) => text.replace(SYMBOLS, ' $& '),
  (text) => text.replace(RAISED, `${BOUNDARY}$&${BOUNDARY}`),
  (text) => text.replace(INVISIBLE, BOUNDARY),
  (text) => text.replace(BOUNDARIES, `$&${BOUNDARY}`),
  lowerCase,
  (text) => text.normalize('NFKD'),
  (text) => text.replace(MARKS, ''),
  (text) => text.normalize('NFKC'),
  lowerCase,
];

/** Before a space, and between two letters of Asian scripts, no pass depends on what is on the other side. */
const CUT =
  / |(?<=[\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3])(?=[\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3])/g;

/** Transforms a text part by part. */
function* transform(text: string, pass: Pass): Steps<string> {
  let transformed = '';
  for (let from = 0; from < text.length;) {
    if (from > 0) yield;
    CUT.lastIndex = from + CHARS_AT_ONCE;
    const end = CUT.exec(text)?.index ?? text.length;
    transformed += pass(text.slice(from, end));
    from = end;
  }
  return transformed;
}

function* normalize(text: string): Steps<string> {
  let normalized = text
    .slice(0, textCharacters)
    .replaceAll(BOUNDARY, ' ')
    .replace(EXCESS_MARKS, '$1');
  for (const pass of ASCII.test(normalized) ? ASCII_PASSES : PASSES) {
    normalized = yield* transform(normalized, pass);
    if (normalized.length > CHARS_AT_ONCE) yield;
  }
  return normalized;
}

/** Yields single characters and pairs of adjacent characters of a string. */
function* grams(run: string, lengths: readonly (1 | 2)[]): Generator<string> {
  const [singles, pairs] = [lengths.includes(1), lengths.includes(2)];
  let previous: string | undefined;
  for (const character of run) {
    if (previous !== undefined && pairs) yield previous + character;
    if (singles) yield character;
    previous = character;
  }
}

/** The parts of compounds, and how many are wanted. */
interface Parts {
  found: Set<string>;
  most: number;
}

/** A query is for whole words, and for as few as possible. */
const QUERY: Parts = { found: new Set(), most: 0 };

const cut = (word: string): string => word.slice(0, wordCharacters);

/** Yields a word, and adds its parts if it is a compound, up to `most` in all. */
function* wordOf(marked: string, { found, most }: Parts): Generator<string> {
  const parts = marked.split(BOUNDARY);
  const word = cut(parts.join(''));
  if (word !== '') yield word;
  if (parts.length === 1) return;
  for (const part of parts)
    if (part.length >= partCharacters && found.size < most) found.add(cut(part));
}

/** Yields the words of one run of letters and digits, and adds the parts of compounds. */
function* wordsOfRun(run: string, compounds: Parts): Generator<string> {
  const isQuery = compounds === QUERY;
  let from = 0;
  // Most runs contain no such script.
  const parts = HAS_UNSPACED.test(run) ? run.matchAll(UNSPACED) : [];
  for (const { 0: unspaced, index } of parts) {
    if (index > from) yield* wordOf(run.slice(from, index), compounds);
    yield* grams(unspaced, isQuery ? [Array.from(unspaced).length > 1 ? 2 : 1] : [1, 2]);
    from = index + unspaced.length;
  }
  if (from < run.length) yield* wordOf(run.slice(from), compounds);
}

/** The runs of letters and digits in a normalized text, and whether a `*` follows. */
function* runsIn(normalized: string): Generator<{ run: string; isPrefix: boolean }> {
  for (const [, run, star] of normalized.matchAll(ASCII.test(normalized) ? ASCII_WORDS : WORDS))
    yield { run: run!, isPrefix: star === '*' };
}

/** Yields the words of a text, and undefined between steps. */
function* wordsIn(text: string, compounds: Parts): Generator<string | undefined> {
  for (const { run } of runsIn(yield* normalize(text)))
    if (PLAIN_RUN.test(run)) yield cut(run);
    else yield* wordsOfRun(run, compounds);
}

/**
 * The distinct words of a turn's texts, up to the limit, and then the parts of compounds, up to
 * theirs. Each text gets an equal share; the others can use the words that it leaves. Yields between
 * steps of some milliseconds: a long text takes up to a third of a second.
 */
export function* extractWords(texts: readonly string[]): Steps<Set<string>> {
  const words = new Set<string>();
  const most = Math.floor(partsOfTurn / texts.length);
  const compounds = texts.map((): Parts => ({ found: new Set(), most }));
  const remaining = texts.map((text, nth) => wordsIn(text, compounds[nth]!));
  function* addUpTo(rest: Generator<string | undefined>, limit: number): Steps<void> {
    for (let count = 1; words.size < limit; count += 1) {
      const { done, value } = rest.next();
      if (done) return;
      if (value !== undefined) words.add(value);
      if (value === undefined || count % WORDS_AT_ONCE === 0) yield;
    }
  }
  for (const [nth, rest] of remaining.entries())
    yield* addUpTo(rest, Math.floor((wordsOfTurn * (nth + 1)) / texts.length));
  for (const rest of remaining) yield* addUpTo(rest, wordsOfTurn);
  return compounds.reduce((all, { found }) => all.union(found), words);
}

/** The term for words that begin so. No word has a `*`. */
const prefixTerm = (characters: string | readonly string[]): string =>
  `${typeof characters === 'string' ? characters : characters.join('')}*`;

/**
 * The terms by which words are found from their beginnings, up to the limit, short beginnings first so
 * that each word has some.
 */
export function extractPrefixes(words: Iterable<string>): Set<string> {
  const terms = new Set<string>();
  const remaining = Array.from(words, (word) => (ASCII.test(word) ? word : Array.from(word)));
  for (let length = prefixCharacters; length <= longestPrefix; length += 1)
    for (const characters of remaining) {
      if (terms.size >= prefixesOfTurn) return terms;
      if (characters.length >= length) terms.add(prefixTerm(characters.slice(0, length)));
    }
  return terms;
}

/** True for the beginning of words, in a query, that is too short to be found. */
export const isShortPrefix = (term: string): boolean =>
  term.endsWith('*') && Array.from(term).length <= prefixCharacters;

/**
 * The distinct terms of a query, all of which a matching turn must contain: words, and beginnings of
 * words, such as `inv*`. Text without spaces is found by any part, with or without `*`.
 */
export function parseSearchTerms(text: string): Set<string> {
  const terms = new Set<string>();
  for (const { run, isPrefix } of runsIn(doAllSteps(normalize(text)))) {
    const words = [...wordsOfRun(run, QUERY)];
    const last = isPrefix && !ENDS_UNSPACED.test(run) ? words.pop() : undefined;
    for (const word of words) terms.add(word);
    if (last !== undefined) terms.add(prefixTerm(Array.from(last).slice(0, longestPrefix)));
  }
  return terms;
}
