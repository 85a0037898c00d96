const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const OPENING_BRACE = 0x7b;

/** The end of the string that begins at `start`: a quote after an even number of backslashes. */
export function endOfString(text: string, start: number): number {
  let end = start;
  let backslashes: number;
  do {
    end = text.indexOf('"', end + 1);
    if (end === -1) return text.length;
    backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
  } while (backslashes % 2 === 1);
  return end;
}

/** The brackets and commas of JSON text, about as many as it has values. Counting stops above `maxValues`. */
export function countValues(text: string, maxValues: number): number {
  let values = 0;
  for (let at = 0; at < text.length && values <= maxValues; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(text, at);
    else if (unit === COMMA || unit === OPENING_BRACKET || unit === OPENING_BRACE) values += 1;
  }
  return values;
}

/**
 * True when JSON text holds more than about `maxValues` values. Check before parsing: 2 MiB of `[[[[…`
 * takes more than 100 MB to parse, and validating a hundred thousand unknown fields takes seconds.
 */
export const hasMoreValues = (text: string, maxValues: number): boolean =>
  // Each value takes at least one character.
  text.length > maxValues && countValues(text, maxValues) > maxValues;

/** The memory of a parsed value beside its text, in bytes: that of an empty object in a list. */
export const BYTES_PER_VALUE = 64;

const SPACE = 0x20;
/** Characters that JSON escapes, and the halves of pairs, which it escapes when they are alone. */
// eslint-disable-next-line no-control-regex
const MAY_BE_ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;
/** Characters that are escaped as a backslash and a letter: \b, \t, \n, \f and \r. */
const SHORT_ESCAPES = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d]);
/** `\u` and four digits, in place of one character. */
const LONG_ESCAPE_ADDS = 5;

/** The characters that a string takes as JSON. */
function stringLength(text: string): number {
  if (!MAY_BE_ESCAPED.test(text)) return text.length + 2;
  if (!text.isWellFormed()) return JSON.stringify(text).length;
  let length = text.length + 2;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE || unit === BACKSLASH) length += 1;
    else if (unit < SPACE) length += SHORT_ESCAPES.has(unit) ? 1 : LONG_ESCAPE_ADDS;
  }
  return length;
}

/**
 * The length of `JSON.stringify(value)` without making that text, for parsed JSON; members of objects
 * may be undefined.
 */
export function jsonLength(value: unknown): number {
  if (typeof value === 'string') return stringLength(value);
  if (typeof value !== 'object' || value === null) return String(value).length;
  const isArray = Array.isArray(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const names = isArray
    ? 0
    : members.reduce((sum, [name]) => sum + stringLength(name) + ':'.length, 0);
  const separators = Math.max(0, members.length - 1);
  return members.reduce(
    (sum, [, member]) => sum + jsonLength(member),
    '{}'.length + names + separators,
  );
}
