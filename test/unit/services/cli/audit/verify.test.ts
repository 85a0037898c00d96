import { expect, test } from '@jest/globals';
import type { Position } from '../../../../../shared/ports/eventStore.ts';
import {
  continuePosition,
  describeOutsideEvidence,
} from '../../../../../services/cli/audit/verify.ts';

test('shows each finding of witnesses and kept checkpoints, as data too', () => {
  const compared = [{ name: 'v', size: 7 }];
  const troubles = [{ name: 'u', trouble: 'does not answer' }];
  const outvoted = ['The log was rolled back: the witness w knows more.'];
  const found = { compared, troubles, outvoted, refusal: undefined, isNew: false };
  expect(describeOutsideEvidence(found)).toEqual({
    data: { compared, not_compared: troubles, outvoted, refusal: null },
    lines: [
      `Outvoted by the other witnesses: ${outvoted[0]}`,
      'v knows the transparency log with 7 leaves, which fits.',
      'Not compared: u does not answer.',
    ],
  });
});

test('an interrupted verification continues at the last leaf where newer events were read', () => {
  const at = (position: string) => position as Position;
  const last = { log_id: 'log_0', event_id: 'event_7', event_hash: '', position: at('7') };
  const read = (leaves: number) => ({ size: 7, last, checker: { size: () => leaves } });
  const position = at('9');
  expect(continuePosition(read(9), { complete: false, position })).toBe('7');
  expect(continuePosition(read(5), { complete: false, position: at('5') })).toBe('5');
  expect(continuePosition(read(9), { complete: true, position })).toBe('9');
  expect(continuePosition(undefined, { complete: false, position })).toBe('9');
});
