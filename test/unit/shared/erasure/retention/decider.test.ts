import { expect, test } from '@jest/globals';
import { retention } from '../../../../../shared/erasure/retention/decider.ts';
import { erasuresConfirmed, timeConfirmed, timeKept } from '../../../../support/builders/events.ts';

const TIME = '2026-11-20T09:30:00.000Z';
const LATER = '2026-11-20T10:30:00.000Z';
const { initialState, decide, evolve } = retention;
const kept = evolve(initialState, timeKept(TIME));

test('a proven time is recorded, and no earlier or equal one after it', () => {
  const keep = (time: string, state = kept) => decide({ type: 'keep_time', time }, state);
  expect(keep(TIME, initialState)).toEqual([timeKept(TIME)]);
  expect(keep(LATER)).toEqual([timeKept(LATER)]);
  expect([keep(TIME), keep('2026-01-01T00:00:00.000Z')]).toEqual([[], []]);
});

test('a confirmation counts, and one of an earlier time begins another order of times', () => {
  const confirm = (time: string, state = kept) =>
    decide({ type: 'confirm_time', time, reason: 'It was stopped.' }, state);
  expect(confirm(LATER)).toEqual([timeConfirmed(LATER)]);
  const [earlier] = confirm('2026-01-01T00:00:00.000Z');
  expect(earlier!.data).toMatchObject({ confirmations: 1, from_revision: 1 });
  const state = evolve(kept, earlier!);
  expect(state).toEqual({
    revision: 1,
    kept: { time: Date.UTC(2026, 0, 1), confirmations: 1, fromRevision: 1 },
  });
  expect(decide({ type: 'keep_time', time: TIME }, state)[0]!.data).toMatchObject({
    confirmations: 1,
    from_revision: 1,
  });
});

test('a confirmation of erasures says up to which last event', () => {
  const command = { type: 'confirm_erasures', reason: 'The maximum is new.' } as const;
  expect(decide({ ...command, before: TIME }, initialState)).toEqual([erasuresConfirmed(TIME)]);
  expect(evolve(initialState, erasuresConfirmed(TIME))).toEqual({
    revision: 0,
    confirmedBefore: Date.parse(TIME),
  });
});
