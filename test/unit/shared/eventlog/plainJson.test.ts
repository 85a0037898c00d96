import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson } from '../../../../shared/eventlog/canonicalJson.ts';
import { isPlainCanonical } from '../../../../shared/eventlog/plainJson.ts';

const plain = fc.string({
  unit: fc.constantFrom('a', 'B', '1', 'é', '🎉', '\uffff', ' ', ':', '{'),
});
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    plain,
    fc.double({ noDefaultInfinity: true, noNaN: true }).map((one) => one + 0),
    fc.integer(),
    fc.constantFrom(true, false, null),
    fc.array(tie('value')),
    fc.dictionary(plain, tie('value')),
  ),
}));

test('knows every canonical text whose strings need no escapes', () =>
  fc.assert(fc.property(value, (one) => expect(isPlainCanonical(canonicalJson(one))).toBe(true))));

test('takes nothing for canonical that is not', () =>
  fc.assert(
    fc.property(value, fc.nat(), fc.string({ maxLength: 2 }), (one, at, put) => {
      const text = canonicalJson(one);
      const where = at % (text.length + 1);
      const changed = text.slice(0, where) + put + text.slice(where + (at % 3));
      if (!isPlainCanonical(changed)) return;
      expect(canonicalJson(JSON.parse(changed))).toBe(changed);
    }),
    { numRuns: 2_000 },
  ));

test.each([
  ['members out of order', '{"b":1,"a":2}'],
  ['numbers as names, out of order', '{"9":1,"10":2}'],
  ['a name that stands twice', '{"a":1,"a":2}'],
  ['a blank', '{"a": 1}'],
  ['a number written in another way', '{"a":1.0}'],
  ['a number beyond all', '{"a":1e999}'],
  ['nothing', ''],
  ['an end that is missing', '{"a":[1'],
  ['something behind its end', '{}{}'],
  ['a string that does not end', '{"a'],
  ['a value that is missing', '[1,]'],
  ['half of a character', '"\ud800"'],
])('refuses %s', (_what, text) => {
  expect(isPlainCanonical(text)).toBe(false);
});
