/** Deeper values are rejected, before they overflow the stack. */
const MAX_DEPTH = 90;

function textOf(value: string): string {
  if (value.isWellFormed()) return JSON.stringify(value);
  throw new TypeError('a text has a lone surrogate');
}

/**
 * The canonical JSON (RFC 8785) of a value that JSON.parse returned. Throws TypeError for a lone
 * surrogate and more than 90 levels.
 */
export function toCanonical(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) throw new TypeError(`there are more than ${MAX_DEPTH} levels`);
  if (typeof value === 'string') return textOf(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => toCanonical(item, depth + 1)).join()}]`;
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${textOf(name)}:${toCanonical(member, depth + 1)}`).join()}}`;
}
