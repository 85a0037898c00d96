import canonicalize from 'canonicalize';

/** The objects and arrays within one another that are looked into: the stack bears no more than some. */
const DEEPEST = 100;

/** True for what JSON.stringify writes in canonical form: members in order, and nothing left out. */
function isInOrder(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object') return typeof value === 'boolean' || Number.isFinite(value);
  if (value === null) return true;
  if (depth === DEEPEST) return false;
  if (Array.isArray(value)) return value.every((one) => isInOrder(one, depth + 1));
  let before: string | undefined;
  for (const [name, member] of Object.entries(value)) {
    // By UTF-16 code units, as RFC 8785 §3.2.3 has it.
    if (before !== undefined && name < before) return false;
    if (!name.isWellFormed() || !isInOrder(member, depth + 1)) return false;
    before = name;
  }
  return !('toJSON' in value);
}

/**
 * JSON text of a value in the canonical form of RFC 8785 (JCS). Throws on what JSON can't carry,
 * lone surrogates included.
 */
export function canonicalJson(value: unknown): string {
  // What most calls are for, at a part of the cost.
  if (isInOrder(value)) return JSON.stringify(value);
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('the value has no JSON form');
  return text;
}
