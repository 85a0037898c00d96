const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const OPENING_BRACE = 0x7b;

/** Where the text goes on after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === BACKSLASH) at += 1;
    else if (unit === QUOTE) return at;
  }
  return text.length;
}

/**
 * True when JSON text holds more than `most` values, give or take its arrays and objects. To be
 * asked before it is parsed: `[[[[…` of 2 MiB takes more than 100 MB then, and a hundred thousand
 * unknown fields take seconds to be checked.
 */
export function hasMoreValues(text: string, most: number): boolean {
  // Each value has a character at least.
  if (text.length <= most) return false;
  let values = 0;
  for (let at = 0; at < text.length && values <= most; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(text, at);
    else if (unit === COMMA || unit === OPENING_BRACKET || unit === OPENING_BRACE) values += 1;
  }
  return values > most;
}
