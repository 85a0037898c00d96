import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../../../shared/limits.ts';
import { createToolAllowance } from '../../../../../shared/runs/model/callTools.ts';

const { toolCalls, toolCallBytes, toolCallBytesUnheld } = LIMITS.run;
const anyRoom = (): boolean => true;
const refused = expect.objectContaining({ code: 'tool_error' });

test('a turn may have so many tool calls, in however many answers, and none more', () => {
  const allowance = createToolAllowance(anyRoom);
  allowance.countCalls(toolCalls - 1);
  allowance.countCalls(1);
  expect(() => allowance.countCalls(1)).toThrow(refused);
});

test('what tool calls record counts in bytes, not in characters', () => {
  const allowance = createToolAllowance(anyRoom);
  allowance.countBytes('', 'é'.repeat(toolCallBytes / 2));
  expect(() => allowance.countBytes('', 'x')).toThrow(refused);
});

test('more than a little takes room, and ends the turn where there is none', () => {
  const asked: number[] = [];
  const allowance = createToolAllowance((bytes) => {
    asked.push(bytes);
    return asked.length < 2;
  });
  allowance.countBytes('x'.repeat(toolCallBytesUnheld));
  expect(asked).toEqual([]);
  allowance.countBytes('x');
  expect(() => allowance.countBytes('xy')).toThrow(refused);
  expect(asked).toEqual([toolCallBytesUnheld + 1, toolCallBytesUnheld + 3]);
});
