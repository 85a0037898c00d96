/**
 * Recognizes canonical JSON (RFC 8785) without decoding it, and the protected texts in it. Stored data
 * is normally canonical, and its strings contain no escapes because long texts are encrypted.
 */

/**
 * Without backslashes and control characters every quote starts or ends a string, and every string is
 * canonical. This form takes half the time of a search for one of them.
 */
const UNESCAPED = /^[ -[\]-~\u00a0-\uffff]*$/;
const NUMBER = /-?[\d][\d.e+-]*/y;
const WORDS = ['true', 'false', 'null'];
const NONE = -1;

const [QUOTE, COMMA, COLON] = [0x22, 0x2c, 0x3a];
const [ZERO, NINE] = [0x30, 0x39];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];
/** Nesting levels that are inspected. */
const DEEPEST = 100;

const HASH_LENGTH = 64;
const BOX = '"box":"';
const SHA256_NAME = '"sha256":';
const SHA256 = `${SHA256_NAME}"`;

/** The offsets between which an object holds the ciphertext of its commitment. */
type Cut = readonly [number, number];

/** 1 for the characters of hex: a regular expression takes twice as long. */
const HEX = new Uint8Array(128);
for (const digit of '0123456789abcdef') HEX[digit.charCodeAt(0)] = 1;

/** True when a SHA-256 in hex begins at an offset. */
function hasHash(text: string, from: number): boolean {
  for (let at = from; at < from + HASH_LENGTH; at += 1)
    if (HEX[text.charCodeAt(at)] !== 1) return false;
  return true;
}

/** True for a SHA-256 in hex. */
export const isHash = (text: string): boolean => text.length === HASH_LENGTH && hasHash(text, 0);

/** True when every character of a text stands for itself in JSON, except for quotes. */
export const isUnescaped = (text: string): boolean => UNESCAPED.test(text) && text.isWellFormed();

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

/** The offset of the first member of an object that is not a ciphertext. */
function memberAfterBox(text: string, from: number): number {
  if (!text.startsWith(BOX, from + 1)) return from + 1;
  const end = text.indexOf('"', from + 1 + BOX.length);
  return text.startsWith(SHA256, end + 2) ? end + 2 : from + 1;
}

/** The offset after an object that is a protected text, whose ciphertext it adds to `cuts`; or NONE. */
function protectedEnd(text: string, from: number, cuts: Cut[]): number {
  const at = memberAfterBox(text, from);
  const hash = at + SHA256.length;
  const end = hash + HASH_LENGTH;
  if (!text.startsWith(SHA256, at) || !hasHash(text, hash) || !text.startsWith('"}', end))
    return NONE;
  if (at > from + 1) cuts.push([from + 1, at]);
  return end + 2;
}

function arrayEnd(text: string, from: number, depth: number, cuts: Cut[]): number {
  if (text.charCodeAt(from + 1) === ARRAY_END) return from + 2;
  let at = from;
  do {
    at = valueEnd(text, at + 1, depth, cuts);
    if (at === NONE) return NONE;
  } while (text.charCodeAt(at) === COMMA);
  return text.charCodeAt(at) === ARRAY_END ? at + 1 : NONE;
}

/**
 * True when the name at an offset comes after another one in UTF-16 order, as RFC 8785 requires; an equal
 * name does not. Both end with a quote.
 */
function isAfter(text: string, name: number, other: number): boolean {
  for (let at = 0; ; at += 1) {
    const [code, before] = [text.charCodeAt(name + at), text.charCodeAt(other + at)];
    if (code !== before) return before === QUOTE || (code !== QUOTE && code > before);
    if (code === QUOTE) return false;
  }
}

function objectEnd(text: string, from: number, depth: number, cuts: Cut[]): number {
  if (text.charCodeAt(from + 1) === OBJECT_END) return from + 2;
  const ofText = protectedEnd(text, from, cuts);
  if (ofText !== NONE) return ofText;
  let at = from;
  let last = NONE;
  do {
    const name = at + 2;
    const end = text.indexOf('"', name);
    if (text.charCodeAt(at + 1) !== QUOTE || end < 0 || text.charCodeAt(end + 1) !== COLON)
      return NONE;
    // The remains of a malformed protected text, which readers might take for another commitment.
    if (text.startsWith(SHA256_NAME, at + 1)) return NONE;
    if (last !== NONE && !isAfter(text, name, last)) return NONE;
    last = name;
    at = valueEnd(text, end + 2, depth, cuts);
    if (at === NONE) return NONE;
  } while (text.charCodeAt(at) === COMMA);
  return text.charCodeAt(at) === OBJECT_END ? at + 1 : NONE;
}

/** The offset after the value at `at`; NONE for an invalid or unrecognized value. */
function valueEnd(text: string, at: number, depth: number, cuts: Cut[]): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return text.indexOf('"', at + 1) + 1 || NONE;
  if (first !== OBJECT && first !== ARRAY) return scalarEnd(text, at);
  if (depth === DEEPEST) return NONE;
  return first === OBJECT
    ? objectEnd(text, at, depth + 1, cuts)
    : arrayEnd(text, at, depth + 1, cuts);
}

/**
 * The part of canonical data that an event's hash covers: the commitments without the ciphertexts.
 * Undefined for text that is not canonical, and for text with escapes, deep nesting or commitments in
 * another form, which may be.
 */
export function coveredJson(data: string): string | undefined {
  const cuts: Cut[] = [];
  if (!isUnescaped(data) || valueEnd(data, 0, 0, cuts) !== data.length) return undefined;
  let covered = '';
  let from = 0;
  for (const [begin, end] of cuts) {
    covered += data.slice(from, begin);
    from = end;
  }
  return covered + data.slice(from);
}
