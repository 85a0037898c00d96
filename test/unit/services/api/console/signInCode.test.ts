import { expect, test } from '@jest/globals';
import {
  createSignInCode,
  SIGN_IN_CODE_MS,
} from '../../../../../services/api/console/signInCode.ts';

test('a code is accepted once, until it expires, and not before it is issued', () => {
  let now = 1_000;
  const clock = (): number => now;
  const code = createSignInCode(clock);
  const text = code.issue();
  expect([code.take(`${text}x`), code.take(text), code.take(text)]).toEqual([false, true, false]);

  const late = createSignInCode(clock);
  const lateText = late.issue();
  now += SIGN_IN_CODE_MS;
  expect(late.take(lateText)).toBe(false);
  now -= 1;
  expect(late.take(lateText)).toBe(true);
  expect(createSignInCode(clock).take('')).toBe(false);
});

test('a code that was taken in vain can be taken again, until it expires', () => {
  let now = 0;
  const code = createSignInCode(() => now);
  const text = code.issue();
  expect(code.take(text)).toBe(true);
  code.giveBack();
  expect(code.take(text)).toBe(true);
  code.giveBack();
  now = SIGN_IN_CODE_MS;
  expect(code.take(text)).toBe(false);
});
