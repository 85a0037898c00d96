/**
 * Extracts the words by which a text can be found. Pure and without a dictionary, so that every
 * process and every release of Node.js extracts the same words.
 */
import { LIMITS } from '../limits.ts';

const { textCharacters, wordCharacters, wordsOfTurn } = LIMITS.search;

const ASCII = /^[\0-\x7f]*$/;
const ASCII_WORDS = /[a-z0-9]+/g;
const WORDS = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
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

/** Lower case, with compatible forms unified and without marks. */
function folded(text: string): string {
  const lower = text.toLowerCase();
  if (ASCII.test(lower)) return lower;
  return lower.normalize('NFKD').replace(MARKS, '').normalize('NFKC').toLowerCase();
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

/** Yields the words of one run of letters and digits. In a query (`isQuery`), as few as possible. */
function* wordsOfRun(run: string, isQuery: boolean): Generator<string> {
  let from = 0;
  // Most runs contain no such script.
  const parts = HAS_UNSPACED.test(run) ? run.matchAll(UNSPACED) : [];
  for (const { 0: unspaced, index } of parts) {
    if (index > from) yield run.slice(from, index).slice(0, wordCharacters);
    yield* grams(unspaced, isQuery ? [Array.from(unspaced).length > 1 ? 2 : 1] : [1, 2]);
    from = index + unspaced.length;
  }
  if (from < run.length) yield run.slice(from).slice(0, wordCharacters);
}

function* wordsIn(text: string, isQuery: boolean): Generator<string> {
  const normalized = folded(text.slice(0, textCharacters));
  for (const [run] of normalized.matchAll(ASCII.test(normalized) ? ASCII_WORDS : WORDS))
    yield* wordsOfRun(run, isQuery);
}

/**
 * The distinct words of a turn's texts, up to the limit. Each text gets an equal share; the others
 * can use what it leaves.
 */
export function extractWords(texts: readonly string[]): Set<string> {
  const words = new Set<string>();
  const remaining = texts.map((text) => wordsIn(text, false));
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
  return words;
}

/** The distinct words of a query, all of which a matching turn must contain. */
export const parseSearchWords = (text: string): Set<string> => new Set(wordsIn(text, true));
