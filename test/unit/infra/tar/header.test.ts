import { expect, test } from '@jest/globals';
import { timesOf } from '../../../../infra/tar/header.ts';

test('an archive takes files up to the largest size that a header can say', () => {
  const modified = new Date('2026-01-01T00:00:00.999Z');
  expect(timesOf(8 ** 11 - 1, modified)).toBe('77777777777 15125334400 ');
  expect(() => timesOf(8 ** 11, modified)).toThrow('8 GiB');
});
