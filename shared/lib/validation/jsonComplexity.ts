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

/**
 * True when JSON text holds more than about `most` values. Check before parsing: 2 MiB of `[[[[…`
 * takes more than 100 MB to parse, and validating a hundred thousand unknown fields takes seconds.
 */
export function hasMoreValues(text: string, maxValues: number): boolean {
  // Each value takes at least one character.
  if (text.length <= maxValues) return false;
  let values = 0;
  for (let at = 0; at < text.length && values <= maxValues; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(text, at);
    else if (unit === COMMA || unit === OPENING_BRACKET || unit === OPENING_BRACE) values += 1;
  }
  return values > maxValues;
}

/**
 * True when JSON text has an object with a member named `__proto__`. ajv leaves such a name out of
 * what a schema describes, and so rejects or accepts the wrong values.
 */
export function hasPrototypeMember(text: string): boolean {
  let isFound = false;
  JSON.parse(text, (name, value: unknown) => {
    isFound ||= name === '__proto__';
    return value;
  });
  return isFound;
}
