import { expect, test } from '@jest/globals';
import { findRecordedCalls } from '../../../../../shared/replays/turns/turnToReplay.ts';
import { createTurnNumbers } from '../../../../../shared/replays/turns/turnNumbers.ts';
import type { ToolCalledData } from '../../../../../shared/sessions/events.ts';

const called = (
  call: Pick<ToolCalledData, 'call_id' | 'tool' | 'arguments' | 'result'> & Partial<ToolCalledData>,
): ToolCalledData => ({ turn: 1, round: 1, is_error: false, duration_ms: 1, ...call });
const CALLS = [
  called({ call_id: 'a', tool: 'clock', arguments: '{}', result: 'nine' }),
  called({ call_id: 'b', tool: 'clock', arguments: '{ }', result: 'other bytes' }),
  called({ call_id: 'c', tool: 'clock', arguments: '{}', result: 'ten', is_error: true }),
];
const clock = { id: 'drawn', round: 1, name: 'clock', arguments: '{}' };
const recorded = (result: string, is_error = false) => ({
  result,
  is_error,
  replayed: 'recorded' as const,
});

test('the k-th call of a tool with the same arguments, to the letter, has the k-th result and its id', () => {
  const { findCall, failsOnMissingCall } = findRecordedCalls(
    { tools: 'recorded', missing_tools: 'stop' },
    CALLS,
  );
  expect(failsOnMissingCall).toBe(true);
  expect(findCall(clock)).toEqual({ call_id: 'a', answer: recorded('nine') });
  expect(findCall({ ...clock, arguments: '{ }' })).toEqual({
    call_id: 'b',
    answer: recorded('other bytes'),
  });
  expect(findCall(clock)).toEqual({ call_id: 'c', answer: recorded('ten', true) });
  expect(findCall(clock)).toMatchObject({
    call_id: 'drawn',
    answer: { is_error: true, replayed: 'missing' },
  });
});

test('a call beyond them is answered by policy: an error, or the tool itself', () => {
  const other = { id: 'drawn', round: 1, name: 'calculator', arguments: '{}' };
  const told = findRecordedCalls({ tools: 'recorded', missing_tools: 'error-result' }, CALLS);
  expect(told.findCall(other).answer).toMatchObject({ is_error: true, replayed: 'missing' });
  expect(told.failsOnMissingCall).toBe(false);
  const live = findRecordedCalls({ tools: 'recorded', missing_tools: 'live' }, CALLS);
  expect(live.findCall(clock).answer?.replayed).toBe('recorded');
  expect(live.findCall(other)).toEqual({ call_id: 'drawn' });
});

test('live tools are called whatever is recorded, under the recorded ids', () => {
  const { findCall, failsOnMissingCall } = findRecordedCalls(
    { tools: 'live', missing_tools: 'stop' },
    CALLS,
  );
  expect(findCall(clock)).toEqual({ call_id: 'a' });
  expect(failsOnMissingCall).toBe(false);
});

test('a call that is not recorded never has the id of a recorded one', () => {
  const { findCall } = findRecordedCalls({ tools: 'live', missing_tools: 'stop' }, [
    ...CALLS,
    called({ call_id: 'a_2', tool: 'clock', arguments: '[]', result: 'x' }),
  ]);
  expect(findCall({ id: 'a', round: 1, name: 'calculator', arguments: '{}' })).toEqual({
    call_id: 'a_3',
  });
});

test('two calls of a round never have the same id, though their recorded ones have, in other rounds', () => {
  const { findCall } = findRecordedCalls({ tools: 'live', missing_tools: 'stop' }, [
    called({ call_id: 'call_1', tool: 'clock', arguments: '{}', result: 'nine' }),
    called({ call_id: 'call_1', tool: 'clock', arguments: '[]', result: 'ten', round: 2 }),
    called({ call_id: 'call_1', tool: 'clock', arguments: '{}', result: 'ten', round: 3 }),
  ]);
  expect(findCall(clock)).toEqual({ call_id: 'call_1' });
  expect(findCall({ ...clock, arguments: '[]' })).toEqual({ call_id: 'call_1_2' });
  expect(findCall({ ...clock, round: 2 })).toEqual({ call_id: 'call_1' });
});

test('turns of a replay are found by the recorded ones, also where some were not answered', () => {
  const numbers = createTurnNumbers(2);
  numbers.add(3, 3);
  numbers.add(6, 5);
  expect([1, 2, 3, 4, 6, 7].map(numbers.from)).toEqual([1, 2, 3, 5, 5, undefined]);
  expect([1, 2, 3, 5, 6, 9].map(numbers.upTo)).toEqual([1, 2, 3, 3, 5, 5]);
});
