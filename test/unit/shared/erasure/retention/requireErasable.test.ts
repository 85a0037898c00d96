import { expect, test } from '@jest/globals';
import { isTurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import {
  requireErasable,
  requireNoHold,
  requirePastMaximum,
  type RetentionPolicy,
} from '../../../../../shared/erasure/retention/requireErasable.ts';

const DAY_MS = 86_400_000;
const ACTIVE = '2026-01-01T00:00:00.000Z';
const after = (days: number): number => Date.parse(ACTIVE) + days * DAY_MS;

const keeping = (
  retention: RetentionPolicy['retention'],
  hold: RetentionPolicy['hold'] = { held: false },
) => ({
  retention,
  hold,
});

/** What is said where the rules refuse. Errors: what is no refusal. */
function refusalOf(ask: () => void): string | undefined {
  try {
    ask();
    return undefined;
  } catch (error) {
    if (isTurnlogError(error, 'erasure_refused')) return error.message;
    throw error;
  }
}

test('without rules anything may be erased at any time', () => {
  expect(refusalOf(() => requireErasable(keeping({}), ACTIVE, after(-1)))).toBeUndefined();
});

test('a session is kept for the minimum after its last event, and the refusal says until when', () => {
  const rules = keeping({ minimum_days: 10 });
  expect(refusalOf(() => requireErasable(rules, ACTIVE, after(10) - 1))).toMatch(
    /at least 10 days .* until 2026-01-11T00:00:00.000Z/,
  );
  expect(refusalOf(() => requireErasable(rules, ACTIVE, after(10)))).toBeUndefined();
  // A clock behind the event keeps it.
  expect(refusalOf(() => requireErasable(rules, ACTIVE, after(-400)))).toMatch(/at least 10 days/);
});

test('what does not say when it was active last is kept where there is a minimum', () => {
  expect(
    refusalOf(() => requireErasable(keeping({ minimum_days: 1 }), 'yesterday', after(99))),
  ).toMatch(/does not say when/);
});

test('a hold keeps everything, with a minimum and without', () => {
  const held = keeping({}, { held: true, reason: 'Case 12' });
  expect(refusalOf(() => requireNoHold(held))).toMatch(/legal hold lasts\. An/);
  expect(refusalOf(() => requireNoHold(keeping({ minimum_days: 10 })))).toBeUndefined();
  expect(refusalOf(() => requireErasable(held, ACTIVE, after(9_999)))).toMatch(/legal hold/);
});

test('retention erases what is past the maximum, and nothing that is held or has none', () => {
  const rules = keeping({ maximum_days: 10 });
  expect(refusalOf(() => requirePastMaximum(rules, ACTIVE, after(10)))).toMatch(/not past/);
  expect(refusalOf(() => requirePastMaximum(rules, ACTIVE, after(10) + 1))).toBeUndefined();
  expect(refusalOf(() => requirePastMaximum(rules, 'yesterday', after(99)))).toMatch(/not past/);
  expect(refusalOf(() => requirePastMaximum(keeping({}), ACTIVE, after(99)))).toMatch(/not past/);
  const held = keeping({ maximum_days: 10 }, { held: true });
  expect(refusalOf(() => requirePastMaximum(held, ACTIVE, after(99)))).toMatch(/legal hold/);
});
