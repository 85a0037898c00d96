import { expect, test } from '@jest/globals';
import { createToolAllowance } from '../../../../../shared/runs/model/toolAllowance.ts';
import { LIMITS } from '../../../../../shared/limits.ts';

const { toolCalls, toolCallBytes, toolCallBytesUnheld } = LIMITS.run;
const anyRoom = (): boolean => true;
const refused = expect.objectContaining({ code: 'tool_error' });

test('a turn may have so many tool calls, in however many answers, and none more', () => {
  const allowance = createToolAllowance(anyRoom);
  allowance.take(toolCalls - 1);
  allowance.take(1);
  expect(() => allowance.take(1)).toThrow(refused);
});

test('what tool calls record counts in bytes, not in characters', () => {
  const allowance = createToolAllowance(anyRoom);
  allowance.spend('', 'é'.repeat(toolCallBytes / 2));
  expect(() => allowance.spend('', 'x')).toThrow(refused);
});

test('more than a little takes room, and ends the turn where there is none', () => {
  const asked: number[] = [];
  const allowance = createToolAllowance((bytes) => {
    asked.push(bytes);
    return asked.length < 2;
  });
  allowance.spend('x'.repeat(toolCallBytesUnheld));
  expect(asked).toEqual([]);
  allowance.spend('x');
  expect(() => allowance.spend('xy')).toThrow(refused);
  expect(asked).toEqual([toolCallBytesUnheld + 1, toolCallBytesUnheld + 3]);
});
