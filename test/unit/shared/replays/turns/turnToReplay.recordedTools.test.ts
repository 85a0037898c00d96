import { expect, test } from '@jest/globals';
import { answerFromRecording } from '../../../../../shared/replays/turns/turnToReplay.ts';
import { createTurnNumbers } from '../../../../../shared/replays/turns/turnNumbers.ts';
import type { ToolCalledData } from '../../../../../shared/sessions/events.ts';

const called = (tool: string, args: string, result: string, is_error = false): ToolCalledData => ({
  turn: 1,
  round: 1,
  call_id: 'call',
  tool,
  arguments: args,
  result,
  is_error,
  duration_ms: 1,
});
const CALLS = [
  called('clock', '{}', 'nine'),
  called('clock', '{ }', 'other bytes'),
  called('clock', '{}', 'ten', true),
];
const clock = { name: 'clock', arguments: '{}' };

test('the k-th call of a tool with the same arguments, to the letter, has the k-th result', () => {
  const { recordedResult, failsOnMissingCall } = answerFromRecording(
    { tools: 'recorded', missing_tools: 'stop' },
    CALLS,
  );
  expect(failsOnMissingCall).toBe(true);
  expect(recordedResult(clock)).toEqual({ result: 'nine', is_error: false, replayed: 'recorded' });
  expect(recordedResult({ name: 'clock', arguments: '{ }' })?.result).toBe('other bytes');
  expect(recordedResult(clock)).toEqual({ result: 'ten', is_error: true, replayed: 'recorded' });
  expect(recordedResult(clock)).toMatchObject({ is_error: true, replayed: 'missing' });
});

test('a call beyond them is answered by policy: an error, or the tool itself', () => {
  const other = { name: 'calculator', arguments: '{}' };
  const told = answerFromRecording({ tools: 'recorded', missing_tools: 'error-result' }, CALLS);
  expect(told.recordedResult(other)).toMatchObject({ is_error: true, replayed: 'missing' });
  expect(told.failsOnMissingCall).toBe(false);
  const live = answerFromRecording({ tools: 'recorded', missing_tools: 'live' }, CALLS);
  expect(live.recordedResult(clock)?.replayed).toBe('recorded');
  expect(live.recordedResult(other)).toBeUndefined();
});

test('live tools are called whatever is recorded', () => {
  const { recordedResult, failsOnMissingCall } = answerFromRecording(
    { tools: 'live', missing_tools: 'stop' },
    CALLS,
  );
  expect(recordedResult(clock)).toBeUndefined();
  expect(failsOnMissingCall).toBe(false);
});

test('turns of a replay are found by the recorded ones, also where some were not answered', () => {
  const numbers = createTurnNumbers(2);
  numbers.add(3, 3);
  numbers.add(6, 5);
  expect([1, 2, 3, 4, 6, 7].map(numbers.from)).toEqual([1, 2, 3, 5, 5, undefined]);
  expect([1, 2, 3, 5, 6, 9].map(numbers.upTo)).toEqual([1, 2, 3, 3, 5, 5]);
});
