import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  fromCanonical,
  toCanonical,
} from '../../../../../../../services/console/src/audit/verify/canonical.ts';
import { canonicalJson } from '../../../../../../../shared/eventlog/canonicalJson.ts';

test('writes the same canonical JSON as the service, and reads it back', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value);
      expect(toCanonical(value)).toBe(text);
      expect(fromCanonical(text)).toEqual(JSON.parse(text));
    }),
  );
});

test.each(['{"b":1,"a":2}', '{"a":1,"a":1}', '1.0', '[1, 2]', '"\\ud800"', '{"a":'])(
  'refuses %s, which is not canonical',
  (text) => {
    expect(() => fromCanonical(text)).toThrow();
  },
);

test('refuses lone surrogates and more than 90 levels', () => {
  expect(() => toCanonical({ '\ud800': 1 })).toThrow('a text has a lone surrogate');
  expect(() => fromCanonical(`${'['.repeat(92)}${']'.repeat(92)}`)).toThrow('more than 90 levels');
  expect(fromCanonical(`${'['.repeat(90)}${']'.repeat(90)}`)).toBeDefined();
});
