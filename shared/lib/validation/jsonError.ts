/** The place of an error in JSON. Lines and columns count from 1, columns in UTF-16 units. */
interface JsonErrorPlace {
  line: number;
  column: number;
  /** The character that can't stand there; undefined at the end of the text. */
  character: string | undefined;
}

const WHITE_SPACE = /[ \t\n\r]*/y;
const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
/**
 * Up to 4,096 characters and escapes of a string. A pattern reads a text several times faster than a
 * loop, but without a limit it would need memory for each repetition.
 */
const STRING_PART =
  // eslint-disable-next-line no-control-regex
  /(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){0,4096}/y;
const LINES = 1_024;
const MANY_LINES = new RegExp(`(?:[^\\n]*\\n){${LINES}}`, 'y');

/** The offset after what the pattern matches at an offset; undefined if it matches nothing. */
function endOfMatch(pattern: RegExp, text: string, offset: number): number | undefined {
  pattern.lastIndex = offset;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

interface Step {
  /** The offset after the value or string. */
  end: number;
  error?: number | undefined;
}

function readString(text: string, start: number): Step {
  let at = start + 1;
  for (let from = start; from < at;) {
    from = at;
    at = endOfMatch(STRING_PART, text, at)!;
  }
  return text[at] === '"' ? { end: at + 1 } : { end: at, error: at };
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

/** The number of lines of a text that ends with a line break, or is empty. */
function countLines(text: string): number {
  let lines = 0;
  let at = 0;
  for (let end; (end = endOfMatch(MANY_LINES, text, at)) !== undefined; at = end) lines += LINES;
  return lines + text.slice(at).split('\n').length - 1;
}

/** Finds the first error of a text that `JSON.parse` refuses, which often does not say where it is. */
export function findJsonError(text: string): JsonErrorPlace {
  const offset = offsetOfError(text) ?? text.length;
  const lineStart = offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1;
  const codePoint = text.codePointAt(offset);
  return {
    line: countLines(text.slice(0, lineStart)) + 1,
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
