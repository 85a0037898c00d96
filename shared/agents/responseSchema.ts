import { LIMITS } from '../limits.ts';

/** A reference from one place of a schema to another one. */
const isOwn = (reference: unknown): boolean =>
  typeof reference !== 'string' || reference.startsWith('#');

/**
 * Why a JSON Schema of a client is not taken, as the rest of a sentence, before it is compiled:
 * it is too large or too deep, refers to what is elsewhere, asks for more than a check, or has a text
 * that no canonical JSON holds.
 */
export function refusedSchema(schema: object): string | undefined {
  const { schemaBytes, schemaDepth } = LIMITS.responseFormat;
  const waiting: { value: object; depth: number }[] = [{ value: schema, depth: 1 }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value, depth } = next;
    if (depth > schemaDepth) return `must not be nested more than ${schemaDepth} times`;
    const { $ref, $dynamicRef, $async } = value as Record<string, unknown>;
    if (!isOwn($ref) || !isOwn($dynamicRef)) return 'must refer to places in itself only: #…';
    if ($async !== undefined) return 'must not have $async';
    for (const [name, member] of Object.entries(value) as [string, unknown][]) {
      if (!name.isWellFormed() || (typeof member === 'string' && !member.isWellFormed()))
        return 'must not have half of a character';
      if (typeof member === 'object' && member !== null)
        waiting.push({ value: member, depth: depth + 1 });
    }
  }
  return Buffer.byteLength(JSON.stringify(schema)) > schemaBytes
    ? `must not be longer than ${schemaBytes} bytes as JSON`
    : undefined;
}
