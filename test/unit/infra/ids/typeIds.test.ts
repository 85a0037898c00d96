import { afterEach, expect, jest, test } from '@jest/globals';
import { typeIds } from '../../../../infra/ids/typeIds.ts';

const HOUR_MS = 3_600_000;

afterEach(() => void jest.restoreAllMocks());

test('what is made later sorts later, also while the clock is put back and forth', () => {
  const now = Date.now();
  const clock = jest.spyOn(Date, 'now');
  const steps = [0, 1, 1, -1_500, -HOUR_MS, 48 * HOUR_MS, 0, -HOUR_MS];
  const [typeIdsMade, uuids]: [string[], string[]] = [[], []];
  for (const step of steps) {
    clock.mockReturnValue(now + step);
    for (let count = 0; count < 1_000; count += 1) {
      typeIdsMade.push(typeIds.typeId('agent'));
      uuids.push(typeIds.uuid());
    }
  }
  for (const made of [typeIdsMade, uuids]) {
    expect(made).toEqual(made.toSorted());
    expect(new Set(made).size).toBe(made.length);
  }
});

test('a TypeID is its prefix and a UUIDv7 in base 32', () => {
  expect(typeIds.typeId('session')).toMatch(/^session_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
  expect(typeIds.uuid()).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
});

test.each([Date.UTC(10_001, 0), -HOUR_MS, Number.NaN])(
  'a clock that says no time (%d) does not move the ids that come later',
  (wrong) => {
    const before = typeIds.uuid();
    const clock = jest.spyOn(Date, 'now').mockReturnValue(wrong);
    const meanwhile = typeIds.uuid();
    clock.mockRestore();
    const made = [before, meanwhile, typeIds.uuid()];
    expect(made).toEqual(made.toSorted());
    expect(made[2]!.slice(0, 4)).toBe(before.slice(0, 4));
  },
);
