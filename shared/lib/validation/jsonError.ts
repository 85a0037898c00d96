import { endOfString } from './jsonComplexity.ts';

/** Where JSON is broken. Lines and columns count from 1, columns in UTF-16 units. */
interface JsonErrorPlace {
  line: number;
  column: number;
  /** The character that can't stand there; undefined at the end of the text. */
  character: string | undefined;
}

const WHITE_SPACE = /[ \t\n\r]*/y;
const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
const ESCAPE_OR_CONTROL = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|[\\]|[^ -\u{10FFFF}]/gu;

/** The offset after what the pattern matches at an offset; undefined if it matches nothing. */
function endOfMatch(pattern: RegExp, text: string, offset: number): number | undefined {
  pattern.lastIndex = offset;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

/** The offset of the first character that can't stand in the string that begins at an offset. */
function errorInString(text: string, start: number, end: number): number | undefined {
  for (const { 0: match, index } of text.slice(start, end).matchAll(ESCAPE_OR_CONTROL))
    if (match.length === 1) return start + index;
  return end >= text.length ? text.length : undefined;
}

interface Step {
  /** The offset after the value or string. */
  end: number;
  error?: number | undefined;
}

function readString(text: string, start: number): Step {
  const end = endOfString(text, start);
  return { end: end + 1, error: errorInString(text, start, end) };
}

function readScalar(text: string, start: number): Step {
  if (text[start] === '"') return readString(text, start);
  const end = endOfMatch(SCALAR, text, start);
  return end === undefined ? { end: start, error: start } : { end };
}

/** The offset of the first error; undefined if the text is JSON. */
function offsetOfError(text: string): number | undefined {
  const open: ('{' | '[')[] = [];
  let expected: 'value' | 'name' | 'colon' | 'next' = 'value';
  let mayClose = false;
  for (let at = 0; ;) {
    at = endOfMatch(WHITE_SPACE, text, at)!;
    const character = text[at];
    if (character === undefined) return open.length === 0 && expected === 'next' ? undefined : at;
    const top = open.at(-1);
    if (mayClose && character === (top === '{' ? '}' : ']')) {
      open.pop();
      at += 1;
      expected = 'next';
      mayClose = open.length > 0;
    } else if (expected === 'value' && (character === '{' || character === '[')) {
      open.push(character);
      at += 1;
      expected = character === '{' ? 'name' : 'value';
      mayClose = true;
    } else if (expected === 'colon' || expected === 'next') {
      if (character !== (expected === 'colon' ? ':' : ',') || top === undefined) return at;
      at += 1;
      expected = expected === 'next' && top === '{' ? 'name' : 'value';
      mayClose = false;
    } else {
      if (expected === 'name' && character !== '"') return at;
      const { end, error } = readScalar(text, at);
      if (error !== undefined) return error;
      at = end;
      mayClose = expected === 'value' && top !== undefined;
      expected = expected === 'name' ? 'colon' : 'next';
    }
  }
}

/** Finds the first error of a text that `JSON.parse` refuses, which often does not say where it is. */
export function findJsonError(text: string): JsonErrorPlace {
  const offset = offsetOfError(text) ?? text.length;
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf('\n') + 1;
  const codePoint = text.codePointAt(offset);
  return {
    line: before.split('\n').length,
    column: offset - lineStart + 1,
    character: codePoint === undefined ? undefined : String.fromCodePoint(codePoint),
  };
}

/** Says where a text that `JSON.parse` refuses is broken: `line 1, column 9 has an unexpected "}"`. */
export function describeJsonError(text: string): string {
  const { line, column, character } = findJsonError(text);
  const place = `line ${line}, column ${column}`;
  return character === undefined
    ? `it ends too early, at ${place}`
    : `${place} has an unexpected ${JSON.stringify(character)}`;
}
