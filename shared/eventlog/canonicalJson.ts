import canonicalize from 'canonicalize';

/** Deeper values go to the library, which uses no call stack for them. */
const MAX_DEPTH = 64;

/**
 * True when JSON.stringify writes the value in canonical form: members are in order, and it drops
 * none.
 */
function isInOrder(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object') return typeof value === 'boolean' || Number.isFinite(value);
  if (value === null) return true;
  if (depth > MAX_DEPTH) return false;
  if (Array.isArray(value)) return value.every((item) => isInOrder(item, depth + 1));
  let previousName: string | undefined;
  for (const [name, member] of Object.entries(value)) {
    // Ordered by UTF-16 code units (RFC 8785 §3.2.3).
    if (previousName !== undefined && name < previousName) return false;
    if (!name.isWellFormed() || !isInOrder(member, depth + 1)) return false;
    previousName = name;
  }
  return !('toJSON' in value);
}

/**
 * Serializes a value as canonical JSON (RFC 8785, JCS). Throws for values that JSON can't
 * represent, including lone surrogates.
 */
export function canonicalJson(value: unknown): string {
  // Most values are in order already, which makes this path much cheaper.
  if (isInOrder(value)) return JSON.stringify(value);
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('the value has no JSON form');
  return text;
}
