import { expect, test } from '@jest/globals';
import { describeOutside } from '../../../../../services/cli/audit/verify.ts';

test('shows each finding of witnesses and kept checkpoints, as data too', () => {
  const compared = [{ name: 'v', size: 7 }];
  const troubles = [{ name: 'u', trouble: 'does not answer' }];
  const outvoted = ['The log was rolled back: the witness w knows more.'];
  const found = { compared, troubles, outvoted, refusal: undefined, isNew: false };
  expect(describeOutside(found)).toEqual({
    data: { compared, not_compared: troubles, outvoted, refusal: null },
    lines: [
      `Outvoted by the other witnesses: ${outvoted[0]}`,
      'v knows the transparency log with 7 leaves, which fits.',
      'Not compared: u does not answer.',
    ],
  });
});
