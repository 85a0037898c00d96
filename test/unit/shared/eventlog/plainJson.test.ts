import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson } from '../../../../shared/eventlog/canonicalJson.ts';
import { coveredJson } from '../../../../shared/eventlog/plainJson.ts';

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
  fc.assert(
    fc.property(value, (one) => expect(coveredJson(canonicalJson(one))).toBe(canonicalJson(one))),
  ));

test('takes nothing for canonical that is not', () =>
  fc.assert(
    fc.property(value, fc.nat(), fc.string({ maxLength: 2 }), (one, at, put) => {
      const text = canonicalJson(one);
      const where = at % (text.length + 1);
      const changed = text.slice(0, where) + put + text.slice(where + (at % 3));
      if (coveredJson(changed) === undefined) return;
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
  expect(coveredJson(text)).toBeUndefined();
});

const HASH = 'a'.repeat(64);

test.each([
  ['a text', `{"input":{"box":"key.AAAA","sha256":"${HASH}"},"turn":1}`],
  ['a text whose ciphertext is missing', `{"input":{"sha256":"${HASH}"},"turn":1}`],
])('leaves of %s what its hash covers', (_what, stored) => {
  expect(coveredJson(stored)).toBe(`{"input":{"sha256":"${HASH}"},"turn":1}`);
});

test.each(['{"box":"key.AAAA"}', '{"box":"a","text":"b"}', '{"box":{"a":1}}', '"sha256"'])(
  'leaves all of %s, which only resembles a text',
  (stored) => {
    expect(coveredJson(stored)).toBe(stored);
  },
);

test.each([
  ['a hash that is none', `{"box":"b","sha256":"${'g'.repeat(64)}"}`],
  ['a hash that is too short', `{"box":"b","sha256":"${'a'.repeat(63)}"}`],
  ['another member behind the hash', `{"box":"b","sha256":"${HASH}","text":"t"}`],
  ['a member between', `{"box":"b","salt":"s","sha256":"${HASH}"}`],
  ['a hash beside others', `{"a":1,"sha256":"${HASH}"}`],
  ['an escape in its ciphertext', `{"box":"b\\\\","sha256":"${HASH}"}`],
])('leaves a text with %s to decoding', (_what, stored) => {
  expect(coveredJson(stored)).toBeUndefined();
});
