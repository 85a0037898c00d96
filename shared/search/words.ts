/**
 * The words that a text is found by. Pure, and without a dictionary, so that each process and each
 * release of Node.js takes the same ones from the same text.
 */
import { LIMITS } from '../limits.ts';

const { textCharacters, wordCharacters, wordsOfTurn } = LIMITS.search;

const ASCII = /^[\0-\x7f]*$/;
const ASCII_WORDS = /[a-z0-9]+/g;
const WORDS = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
/**
 * What makes no other word of a letter, as letters are taken apart by NFKD: accents, signs of Arabic and
 * Hebrew, and what says how a character or an emoji is drawn.
 */
const MARKS =
  /[[\u0300-\u036f][\p{Mn}&&[\p{Script_Extensions=Arabic}\p{Script_Extensions=Hebrew}]]\u20e3\ufe00-\ufe0f\u{e0100}-\u{e01ef}]+/gv;
/** What is written without spaces between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc]+/gu;
const HAS_UNSPACED = new RegExp(UNSPACED.source, 'u');

/** In lower case, compatible forms as one, and without such marks. */
function folded(text: string): string {
  const lower = text.toLowerCase();
  if (ASCII.test(lower)) return lower;
  return lower.normalize('NFKD').replace(MARKS, '').normalize('NFKC').toLowerCase();
}

/** Characters of the string, each whole, alone or two by two. */
function* grams(run: string, lengths: readonly (1 | 2)[]): Generator<string> {
  const characters = Array.from(run);
  for (const [at, character] of characters.entries()) {
    if (lengths.includes(1)) yield character;
    const next = characters[at + 1];
    if (lengths.includes(2) && next !== undefined) yield character + next;
  }
}

/** What one run of letters and digits is found by. `sought`: by as few words as will do. */
function* wordsOfRun(run: string, sought: boolean): Generator<string> {
  let from = 0;
  // Most runs have none of it.
  const parts = HAS_UNSPACED.test(run) ? run.matchAll(UNSPACED) : [];
  for (const { 0: unspaced, index } of parts) {
    if (index > from) yield run.slice(from, index).slice(0, wordCharacters);
    yield* grams(unspaced, sought ? [Array.from(unspaced).length > 1 ? 2 : 1] : [1, 2]);
    from = index + unspaced.length;
  }
  if (from < run.length) yield run.slice(from).slice(0, wordCharacters);
}

function* wordsIn(text: string, sought: boolean): Generator<string> {
  const whole = folded(text.slice(0, textCharacters));
  for (const [run] of whole.matchAll(ASCII.test(whole) ? ASCII_WORDS : WORDS))
    yield* wordsOfRun(run, sought);
}

/**
 * The different words of a turn's texts, as many as are kept: of each text as large a share, and what
 * one does not need is for the others.
 */
export function extractWords(texts: readonly string[]): Set<string> {
  const words = new Set<string>();
  const rests = texts.map((text) => wordsIn(text, false));
  function take(rest: Generator<string>, most: number): void {
    while (words.size < most) {
      const next = rest.next();
      if (next.done) return;
      words.add(next.value);
    }
  }
  for (const [nth, rest] of rests.entries())
    take(rest, Math.floor((wordsOfTurn * (nth + 1)) / texts.length));
  for (const rest of rests) take(rest, wordsOfTurn);
  return words;
}

/** The different words that a turn has to have, all of them, to be found by the text. */
export const parseSearchWords = (text: string): Set<string> => new Set(wordsIn(text, true));
