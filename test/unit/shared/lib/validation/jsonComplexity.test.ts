import { describe, expect, test } from '@jest/globals';
import { array, assert, jsonValue, property } from 'fast-check';
import {
  hasMoreValues,
  hasPrototypeMember,
} from '../../../../../shared/lib/validation/jsonComplexity.ts';

test.each([
  ['{"__proto__":1}', true],
  ['[{"a":{"\\u005f_proto__":{}}}]', true],
  ['{"a":"__proto__"}', false],
  ['["__proto__"]', false],
])('whether %s has a member named __proto__', (text, has) => {
  expect(hasPrototypeMember(text)).toBe(has);
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
