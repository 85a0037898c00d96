/**
 * Extracts the words by which a text can be found. Pure and without a dictionary, so that every
 * process and every release of Node.js extracts the same words.
 */
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
/** Scripts written without spaces between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc]+/gu;
const HAS_UNSPACED = new RegExp(UNSPACED.source, 'u');
const ENDS_UNSPACED = new RegExp(`${UNSPACED.source}$`, 'u');

/** Lower case, with compatible forms unified and without marks. */
function folded(text: string): string {
  const lower = text.toLowerCase();
  if (ASCII.test(lower)) return lower;
  return lower.normalize('NFKD').replace(MARKS, '').normalize('NFKC').toLowerCase();
}

/** Marks the boundaries inside of compounds, and separates symbols from the words next to them. */
function withBoundaries(text: string): string {
  const plain = text.replaceAll(BOUNDARY, ' ');
  if (ASCII.test(plain)) return plain.replace(ASCII_BOUNDARIES, `$&${BOUNDARY}`);
  return plain
    .replace(SYMBOLS, ' $& ')
    .replace(RAISED, `${BOUNDARY}$&${BOUNDARY}`)
    .replace(INVISIBLE, BOUNDARY)
    .replace(BOUNDARIES, `$&${BOUNDARY}`);
}

/** Yields single characters and pairs of adjacent characters of a string. */
function* grams(run: string, lengths: readonly (1 | 2)[]): Generator<string> {
  const characters = Array.from(run);
  for (const [at, character] of characters.entries()) {
    if (lengths.includes(1)) yield character;
    const next = characters[at + 1];
    if (lengths.includes(2) && next !== undefined) yield character + next;
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

/** The runs of letters and digits in a text, and whether a `*` follows. */
function* runsIn(text: string): Generator<{ run: string; isPrefix: boolean }> {
  const normalized = folded(withBoundaries(text.slice(0, textCharacters)));
  for (const [, run, star] of normalized.matchAll(ASCII.test(normalized) ? ASCII_WORDS : WORDS))
    yield { run: run!, isPrefix: star === '*' };
}

function* wordsIn(text: string, compounds: Parts): Generator<string> {
  for (const { run } of runsIn(text))
    if (PLAIN_RUN.test(run)) yield cut(run);
    else yield* wordsOfRun(run, compounds);
}

/**
 * The distinct words of a turn's texts, up to the limit, and then the parts of compounds, up to
 * theirs. Each text gets an equal share; the others can use the words that it leaves.
 */
export function extractWords(texts: readonly string[]): Set<string> {
  const words = new Set<string>();
  const most = Math.floor(partsOfTurn / texts.length);
  const compounds = texts.map((): Parts => ({ found: new Set(), most }));
  const remaining = texts.map((text, nth) => wordsIn(text, compounds[nth]!));
  function addUpTo(rest: Generator<string>, limit: number): void {
    while (words.size < limit) {
      const next = rest.next();
      if (next.done) return;
      words.add(next.value);
    }
  }
  for (const [nth, rest] of remaining.entries())
    addUpTo(rest, Math.floor((wordsOfTurn * (nth + 1)) / texts.length));
  for (const rest of remaining) addUpTo(rest, wordsOfTurn);
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
  for (const { run, isPrefix } of runsIn(text)) {
    const words = [...wordsOfRun(run, QUERY)];
    const last = isPrefix && !ENDS_UNSPACED.test(run) ? words.pop() : undefined;
    for (const word of words) terms.add(word);
    if (last !== undefined) terms.add(prefixTerm(Array.from(last).slice(0, longestPrefix)));
  }
  return terms;
}
