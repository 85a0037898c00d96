/**
 * Recognizes canonical JSON (RFC 8785) without decoding it. Stored data is normally canonical, and
 * its strings contain no escapes because long texts are encrypted.
 */

/** Without these characters every quote starts or ends a string, and every string is canonical. */
const ESCAPED = /[\\\p{Cc}]/u;
const NUMBER = /-?[\d][\d.e+-]*/y;
const WORDS = ['true', 'false', 'null'];
const NONE = -1;

const [QUOTE, COMMA, COLON] = [0x22, 0x2c, 0x3a];
const [ZERO, NINE] = [0x30, 0x39];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];
/** Nesting levels that are inspected. */
const DEEPEST = 100;

const isSeparator = (code: number): boolean =>
  code === COMMA || code === OBJECT_END || code === ARRAY_END;

function scalarEnd(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first > NINE) {
    const word = WORDS.find((candidate) => text.startsWith(candidate, at));
    return word === undefined ? NONE : at + word.length;
  }
  // Most numbers have one digit, for which the general check is slow.
  if (first >= ZERO && isSeparator(text.charCodeAt(at + 1))) return at + 1;
  NUMBER.lastIndex = at;
  const number = NUMBER.exec(text)?.[0];
  return number !== undefined && String(Number(number)) === number ? at + number.length : NONE;
}

function arrayEnd(text: string, from: number, depth: number): number {
  if (text.charCodeAt(from + 1) === ARRAY_END) return from + 2;
  let at = from;
  do {
    at = valueEnd(text, at + 1, depth);
    if (at === NONE) return NONE;
  } while (text.charCodeAt(at) === COMMA);
  return text.charCodeAt(at) === ARRAY_END ? at + 1 : NONE;
}

function objectEnd(text: string, from: number, depth: number): number {
  if (text.charCodeAt(from + 1) === OBJECT_END) return from + 2;
  let at = from;
  let last: string | undefined;
  do {
    if (text.charCodeAt(at + 1) !== QUOTE) return NONE;
    const end = text.indexOf('"', at + 2);
    const name = text.slice(at + 2, end);
    // In UTF-16 order, as RFC 8785 requires; a duplicate name is out of order.
    if (end < 0 || text.charCodeAt(end + 1) !== COLON || (last !== undefined && name <= last))
      return NONE;
    last = name;
    at = valueEnd(text, end + 2, depth);
    if (at === NONE) return NONE;
  } while (text.charCodeAt(at) === COMMA);
  return text.charCodeAt(at) === OBJECT_END ? at + 1 : NONE;
}

/** The offset after the value at `at`; NONE for an invalid or unrecognized value. */
function valueEnd(text: string, at: number, depth: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return text.indexOf('"', at + 1) + 1 || NONE;
  if (first !== OBJECT && first !== ARRAY) return scalarEnd(text, at);
  if (depth === DEEPEST) return NONE;
  return first === OBJECT ? objectEnd(text, at, depth + 1) : arrayEnd(text, at, depth + 1);
}

/**
 * True for text that is certainly canonical. False for text with escapes or deep nesting, which may
 * be canonical too.
 */
export const isPlainCanonical = (text: string): boolean =>
  !ESCAPED.test(text) && text.isWellFormed() && valueEnd(text, 0, 0) === text.length;
