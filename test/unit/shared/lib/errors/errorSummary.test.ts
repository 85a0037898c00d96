import { expect, test } from '@jest/globals';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { errorSummary } from '../../../../../shared/lib/errors/errorSummary.ts';

test('a failure in short is its code, its sentence and what its cause says', () => {
  const cause = Object.assign(new Error('400 Their words'), { body: 'x'.repeat(1_000) });
  expect(errorSummary(new TurnlogError('model_error', 'Our words.', { cause }))).toEqual({
    code: 'model_error',
    reason: 'Our words.',
    cause: '400 Their words',
  });
});

test('a defect in short is an internal_error, whatever was thrown', () => {
  expect(errorSummary(new TypeError('x is no function'))).toEqual({
    code: 'internal_error',
    reason: 'x is no function',
  });
  expect(errorSummary('text')).toEqual({ code: 'internal_error', reason: 'text' });
});

test('nothing in it has any length', () => {
  const long = 'x'.repeat(10_000);
  const { reason, cause } = errorSummary(new Error(long, { cause: new Error(long) }));
  expect([reason.length, cause?.length]).toEqual([300, 300]);
  const whole = 'x'.repeat(300);
  expect(errorSummary(new Error(whole)).reason).toBe(whole);
});
