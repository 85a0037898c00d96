import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { findJsonToken, isExactNumber } from '../../../../../shared/lib/validation/jsonTokens.ts';

/** All names, strings and numbers of JSON text, by an ordinary parser. */
function tokensOf(value: unknown, path = ''): unknown[] {
  if (typeof value === 'string') return [['string', JSON.stringify(value), path]];
  if (typeof value === 'number') return [['number', JSON.stringify(value), path]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => [
    ...(Array.isArray(value) ? [] : [['name', JSON.stringify(name), path]]),
    ...tokensOf(part, `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`),
  ]);
}

test('all names, strings and numbers are found in order, with their places', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 1), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      const expected = tokensOf(JSON.parse(text));
      const found = expected.map((_, index) => {
        let before = index;
        const { kind, token, path } = findJsonToken(text, () => before-- === 0)!;
        return [kind, token, path];
      });
      expect(found).toEqual(expected);
      let seen = 0;
      expect(findJsonToken(text, () => ((seen += 1), false))).toBeUndefined();
      expect(seen).toBe(expected.length);
    }),
  );
});

test('a value that is nested 500,000 deep is searched', () => {
  const levels = 500_000;
  const text = `${'['.repeat(levels)}7${']'.repeat(levels)}`;
  expect(findJsonToken(text, () => true)?.token).toBe('7');
});

test('a place that takes long to name is that of a value around it', () => {
  const list = `${'['.repeat(1_000)}7`;
  expect(findJsonToken(list, () => true)?.path).toBe('/0'.repeat(250));
  const named = `{"a":{"${'b'.repeat(1_000_000)}":[7`;
  expect(findJsonToken(named, (_, kind) => kind === 'number')?.path).toBe('/a');
});

test.each([
  '0',
  '-1',
  '1.0',
  '1.50',
  '0.00',
  '1e2',
  '120E-1',
  '1E+21',
  '9007199254740992',
  '18446744073709552000',
  '0.1',
  '1.7976931348623157e308',
  '5e-324',
  '0e999999999999',
])('%s keeps its value', (number) => {
  expect(isExactNumber(number)).toBe(true);
});

test.each([
  '-0',
  '-0.0e5',
  '9007199254740993',
  '12345678901234567890',
  '0.1000000000000000055',
  '1e999',
  '-1e999',
  '1e-400',
  `1${'0'.repeat(400_000)}1e-400000`,
])('%.30s changes', (number) => {
  expect(isExactNumber(number)).toBe(false);
});

/** A decimal as an integer, scaled by 10 ** 60. */
function scaled(number: string): bigint {
  const [mantissa = '', exponent = '0'] = number.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return BigInt(whole + fraction) * 10n ** BigInt(60 + Number(exponent) - fraction.length);
}

const digits = fc.stringMatching(/^\d{0,20}$/);

test('a number is exact when its shortest form has the same value', () => {
  const numbers = fc
    .tuple(fc.nat(9), digits, digits, fc.integer({ min: -30, max: 30 }))
    .map(([first, more, fraction, exponent]) => {
      const whole = first === 0 ? '0' : `${first}${more}`;
      return `${whole}${fraction && `.${fraction}`}${exponent === 0 ? '' : `E${exponent}`}`;
    });
  fc.assert(
    fc.property(numbers, (number) => {
      const isSame = scaled(number) === scaled(String(Number(number)));
      expect(isExactNumber(number)).toBe(isSame);
    }),
  );
});
