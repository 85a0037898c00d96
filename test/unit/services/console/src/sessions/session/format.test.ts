import { expect, test } from '@jest/globals';
import {
  formatTokenCost,
  formatDuration,
  formatTokens,
} from '../../../../../../../services/console/src/sessions/session/format.ts';

test.each([
  [0, '0 ms'],
  [999.4, '999 ms'],
  [1_000, '1 s'],
  [3_240, '3.2 s'],
  [59_999, '60 s'],
  [125_000, '2 min 5 s'],
])('%d milliseconds are %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test('tokens are those of the prompt and of the answer', () => {
  expect(formatTokens({ prompt: 1_200, completion: 34, total: 1_234 })).toBe('1,200 + 34 tokens');
});

test('a cost is that of both kinds of tokens at the price of the model', () => {
  const price = { input_per_million: '2.50', output_per_million: '10', currency: 'USD' };
  const tokens = { prompt: 1_000, completion: 100, total: 1_100 };
  expect(formatTokenCost(tokens, price)).toBe('0.0035 USD');
  expect(formatTokenCost(tokens, undefined)).toBeUndefined();
});
