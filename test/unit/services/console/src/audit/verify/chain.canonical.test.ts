import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { toCanonical } from '../../../../../../../services/console/src/audit/verify/chain.ts';
import { canonicalJson } from '../../../../../../../shared/eventlog/canonicalJson.ts';

test('writes the same canonical JSON as the service', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value);
      expect(toCanonical(value)).toBe(text);
    }),
  );
});

test('refuses lone surrogates and more than 90 levels', () => {
  expect(() => toCanonical({ '\ud800': 1 })).toThrow('a text has a lone surrogate');
  const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
  expect(() => toCanonical(nested(92))).toThrow('more than 90 levels');
  expect(toCanonical(nested(90))).toHaveLength(180);
});
