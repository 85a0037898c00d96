import { expect, test } from '@jest/globals';
import {
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
  expect(formatTokens({ prompt: 1_200, completion: 34 })).toBe('1,200 + 34 tokens');
});
