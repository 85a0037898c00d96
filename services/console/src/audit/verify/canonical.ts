/** Deeper values are rejected, before they overflow the stack. */
const MAX_DEPTH = 90;

function textOf(value: string): string {
  if (value.isWellFormed()) return JSON.stringify(value);
  throw new TypeError('a text has a lone surrogate');
}

/**
 * The canonical JSON (RFC 8785) of a value that JSON.parse returned. Throws TypeError for a lone
 * surrogate, a number that is not finite, and more than 90 levels.
 */
export function toCanonical(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) throw new TypeError(`there are more than ${MAX_DEPTH} levels`);
  if (typeof value === 'string') return textOf(value);
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new TypeError('a number is not finite');
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => toCanonical(item, depth + 1)).join()}]`;
  const names = Object.keys(value).toSorted((a, b) => (a < b ? -1 : 1));
  const members = value as Readonly<Record<string, unknown>>;
  return `{${names.map((name) => `${textOf(name)}:${toCanonical(members[name], depth + 1)}`).join()}}`;
}

/** The value of a text that is its own canonical form. Throws TypeError or SyntaxError. */
export function fromCanonical(text: string): unknown {
  const value: unknown = JSON.parse(text);
  // Parsers differ about other texts, for example where a name occurs twice.
  if (toCanonical(value) === text) return value;
  throw new TypeError('the JSON is not canonical');
}
