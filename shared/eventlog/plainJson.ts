/**
 * Canonical JSON (RFC 8785) told from any other text without being decoded. What is stored is
 * canonical as a rule, and its strings need no escapes, because boxes hold the texts.
 */

/** In a text without these each quote begins or ends a string, and each string is as it has to be. */
const ESCAPED = /[\\\p{Cc}]/u;
const NUMBER = /-?[\d][\d.e+-]*/y;
const WORD = /true|false|null/y;
const NOT = -1;

const [QUOTE, COMMA, COLON] = [0x22, 0x2c, 0x3a];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];
/** The objects and arrays within one another that are looked into. */
const DEEPEST = 100;

/** What a regular expression finds at a place. */
function found(text: string, at: number, what: RegExp): string | undefined {
  what.lastIndex = at;
  return what.exec(text)?.[0];
}

function scalarEnd(text: string, at: number): number {
  const word = found(text, at, WORD);
  if (word !== undefined) return at + word.length;
  const number = found(text, at, NUMBER);
  return number !== undefined && String(Number(number)) === number ? at + number.length : NOT;
}

function arrayEnd(text: string, from: number, depth: number): number {
  if (text.charCodeAt(from + 1) === ARRAY_END) return from + 2;
  let at = from;
  do {
    at = valueEnd(text, at + 1, depth);
    if (at === NOT) return NOT;
  } while (text.charCodeAt(at) === COMMA);
  return text.charCodeAt(at) === ARRAY_END ? at + 1 : NOT;
}

function objectEnd(text: string, from: number, depth: number): number {
  if (text.charCodeAt(from + 1) === OBJECT_END) return from + 2;
  let at = from;
  let last: string | undefined;
  do {
    if (text.charCodeAt(at + 1) !== QUOTE) return NOT;
    const end = text.indexOf('"', at + 2);
    const name = text.slice(at + 2, end);
    // In the order of UTF-16, which is that of RFC 8785; a name that stands twice is out of it.
    if (end < 0 || text.charCodeAt(end + 1) !== COLON || (last !== undefined && name <= last))
      return NOT;
    last = name;
    at = valueEnd(text, end + 2, depth);
    if (at === NOT) return NOT;
  } while (text.charCodeAt(at) === COMMA);
  return text.charCodeAt(at) === OBJECT_END ? at + 1 : NOT;
}

/** The place behind the value at a place; NOT where that is none, or can't be told. */
function valueEnd(text: string, at: number, depth: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return text.indexOf('"', at + 1) + 1 || NOT;
  if (first !== OBJECT && first !== ARRAY) return scalarEnd(text, at);
  if (depth === DEEPEST) return NOT;
  return first === OBJECT ? objectEnd(text, at, depth + 1) : arrayEnd(text, at, depth + 1);
}

/** True for a text that is certainly canonical; of one that has escapes, or is deep, it is not told. */
export const isPlainCanonical = (text: string): boolean =>
  !ESCAPED.test(text) && text.isWellFormed() && valueEnd(text, 0, 0) === text.length;
