import { expect, test } from '@jest/globals';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import {
  canonicalJson,
  writeCanonicalJson,
  writeJson,
} from '../../../../shared/eventlog/canonicalJson.ts';

const name = fc.string({ unit: fc.constantFrom('a', 'B', '1', '10', 'é', '🎉', '\uffff', '') });
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.string({ unit: 'binary' }),
    fc.double({ noDefaultInfinity: true, noNaN: true }),
    fc.constantFrom(true, false, null, undefined, -0),
    fc.array(tie('value').filter((one) => one !== undefined)),
    fc.dictionary(name, tie('value')),
    // In order, as most values come.
    fc
      .dictionary(name, tie('value'))
      .map((one) =>
        Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1))),
      ),
  ),
}));

test('writes what the library writes, whatever the order of members', () =>
  fc.assert(
    fc.property(
      value.filter((one) => one !== undefined),
      (one) => expect(canonicalJson(one)).toBe(canonicalize(one)),
    ),
    { numRuns: 2_000 },
  ));

test.each([
  ['half of a character', '\ud800'],
  ['half of a character in a member', { a: { b: ['\udc00'] } }],
  ['half of a character in a name', { '\ud800': 1 }],
  ['no number', Number.NaN],
  ['infinity', { a: Infinity }],
  ['nothing', undefined],
  ['a bigint', { a: 1n }],
])('refuses %s', (_, one) => {
  expect(() => canonicalJson(one)).toThrow();
});

test('writes what is nested deeper than a stack', () => {
  const text = '['.repeat(1_000_000) + ']'.repeat(1_000_000);
  expect(canonicalJson(JSON.parse(text)) === text).toBe(true);
});

test('writes a date as the library does', () => {
  expect(canonicalJson({ a: new Date(0) })).toBe('{"a":"1970-01-01T00:00:00.000Z"}');
});

async function slicesOf(one: object): Promise<string[]> {
  const slices: string[] = [];
  await writeCanonicalJson(one, { accountId: 'account', write: (text) => void slices.push(text) });
  return slices;
}

test('writes the same in slices', () =>
  fc.assert(
    fc.asyncProperty(fc.dictionary(name, value), async (one) =>
      expect((await slicesOf(one)).join('')).toBe(canonicalJson(one)),
    ),
    { numRuns: 1_000 },
  ));

test('the event loop turns between slices', async () => {
  const messages = Array.from({ length: 20 }, () => ({ content: 'x'.repeat(100_000) }));
  let turns = 0;
  let next = setImmediate(function turn() {
    turns += 1;
    next = setImmediate(turn);
  });
  const slices = await slicesOf({ messages });
  clearImmediate(next);
  expect(slices.length).toBeGreaterThan(20);
  expect(turns).toBeGreaterThan(20);
});

test('writes members in their own order in slices', () =>
  fc.assert(
    fc.asyncProperty(
      fc.dictionary(name, fc.jsonValue()).filter((one) => !('toJSON' in one)),
      async (one) => {
        const slices: string[] = [];
        await writeJson(one, { accountId: 'account', write: (text) => void slices.push(text) });
        expect(slices.join('')).toBe(JSON.stringify(one));
      },
    ),
    { numRuns: 500 },
  ));
