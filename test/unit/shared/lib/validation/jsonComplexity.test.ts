import { describe, expect, test } from '@jest/globals';
import { array, assert, jsonValue, property, string } from 'fast-check';
import { hasMoreValues, jsonLength } from '../../../../../shared/lib/validation/jsonComplexity.ts';

describe('the length of JSON', () => {
  test.each([
    'a"\\\b\t\n\f\r\0\u001f\u007f\u2028',
    '\ud800',
    'ä\u{1f600}',
    '',
    null,
    true,
    -0,
    1e21,
    [],
    {},
    { a: undefined, b: 1, c: undefined },
  ])('of %j is known without writing it', (value) => {
    expect(jsonLength(value)).toBe(JSON.stringify(value).length);
  });

  test('of any value is that of its text', () => {
    const values = array(string({ unit: 'binary' }));
    assert(
      property(jsonValue(), values, (value, texts) => {
        const both = { value, texts, [texts.join()]: texts };
        expect(jsonLength(both)).toBe(JSON.stringify(both).length);
      }),
    );
  });
});

describe('whether JSON has more values than a limit', () => {
  test.each([
    ['brackets', '['.repeat(100)],
    ['empty objects', `[${'{},'.repeat(99)}{}]`],
    ['numbers', `[${'1,'.repeat(99)}1]`],
    ['members', `{${'"a":1,'.repeat(99)}"a":1}`],
    ['what follows a string that ends in a backslash', `["\\\\",${'1,'.repeat(99)}1]`],
  ])('is told of %s', (_, text) => {
    expect(hasMoreValues(text, 90)).toBe(true);
    // An array or object counts twice.
    expect(hasMoreValues(text, 210)).toBe(false);
  });

  test.each([
    ['commas and brackets in a string', JSON.stringify({ content: '[{,'.repeat(1_000) })],
    ['quotes in a string', JSON.stringify({ content: '",{['.repeat(1_000) })],
    ['a string that does not end', `"${','.repeat(1_000)}`],
  ])('is not told of %s', (_, text) => {
    expect(hasMoreValues(text, 5)).toBe(false);
  });

  const countOf = (value: unknown): number =>
    value !== null && typeof value === 'object'
      ? Object.values(value).reduce((sum: number, part) => sum + countOf(part), 1)
      : 1;

  test('is never told of a value that has fewer', () => {
    assert(
      property(array(jsonValue()), (value) => {
        expect(hasMoreValues(JSON.stringify(value), 2 * countOf(value))).toBe(false);
      }),
    );
  });
});
