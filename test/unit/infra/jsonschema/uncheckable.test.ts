import { describe, expect, test } from '@jest/globals';
import { uncheckableReason } from '../../../../infra/jsonschema/uncheckable.ts';

describe('why a schema can’t be checked', () => {
  test.each([
    ['{"__proto__":1}', /__proto__/],
    ['[{"a":{"\\u005f_proto__":{}}}]', /__proto__/],
    [JSON.stringify({ pattern: '[^a]'.repeat(501) }), /over 500 classes/],
    [JSON.stringify({ pattern: '\\P{L}'.repeat(126) }), /over 500 classes/],
    [JSON.stringify({ pattern: '\\\\.'.repeat(501) }), /over 500 classes/],
    [JSON.stringify({ pattern: '\\p{L}'.repeat(126) }).replaceAll('p{', '\\u0070{'), /over 500/],
    [
      JSON.stringify({ anyOf: [{ pattern: '.'.repeat(250) }, { pattern: '\\W'.repeat(251) }] }),
      /over/,
    ],
    [JSON.stringify({ patternProperties: { ['\\S'.repeat(501)]: true } }), /over 500 classes/],
  ])('%.60s', (schema, reason) => {
    expect(uncheckableReason(schema)).toMatch(reason);
  });

  test.each([
    '{"a":"__proto__"}',
    '["__proto__"]',
    JSON.stringify({ pattern: '[^a]'.repeat(500) }),
    JSON.stringify({ pattern: '\\.'.repeat(1_000) }),
    JSON.stringify({ description: '.'.repeat(10_000), pattern: 'abc'.repeat(1_000) }),
    JSON.stringify({ properties: { pattern: { type: 'string' } }, patternProperties: null }),
  ])('none in %.60s', (schema) => {
    expect(uncheckableReason(schema)).toBeUndefined();
  });

  test('throws for text that is not JSON', () => {
    expect(() => uncheckableReason('{')).toThrow(SyntaxError);
  });
});
