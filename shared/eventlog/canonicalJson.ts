import canonicalize from 'canonicalize';

/**
 * JSON text of a value in the canonical form of RFC 8785 (JCS). Throws on what JSON can't carry,
 * lone surrogates included.
 */
export function canonicalJson(value: unknown): string {
  // What most calls are for, at a tenth of the cost.
  if (typeof value === 'string' && value.isWellFormed()) return JSON.stringify(value);
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('the value has no JSON form');
  return text;
}
