import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  chainVerifier,
  toCanonical,
} from '../../../../../../../services/console/src/audit/verify/chain.ts';
import { canonicalJson } from '../../../../../../../shared/eventlog/canonicalJson.ts';
import { commitText } from '../../../../../../../shared/eventlog/encryption/protectedText.ts';
import { shownEventHash } from '../../../../../../../shared/transparency/proof/shownTexts.ts';
import { SESSION, shownSession } from '../../../../../../support/builders/bundles.ts';

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

test('takes no lone surrogate for the replacement character that was committed to', async () => {
  const [first] = shownSession();
  const recorded = { ...first!, data: { title: commitText('\ufffd') } };
  const hash = shownEventHash(recorded);
  const showing = (text: string): Promise<void> =>
    chainVerifier(SESSION).add({
      ...recorded,
      data: { title: { ...recorded.data.title, text } },
      metadata: { ...recorded.metadata, hash },
    });
  await showing('\ufffd');
  await expect(showing('\ud800')).rejects.toThrow('has another title than was recorded');
});
