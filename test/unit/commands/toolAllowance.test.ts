import { expect, test } from '@jest/globals';
import { createToolAllowance } from '../../../shared/commands/run/toolAllowance.ts';
import { LIMITS } from '../../../shared/limits.ts';

const { toolCalls, toolCallBytes } = LIMITS.run;
const refused = expect.objectContaining({ code: 'tool_error' });

test('a turn may have so many tool calls, in however many answers, and none more', () => {
  const allowance = createToolAllowance();
  allowance.take(toolCalls - 1);
  allowance.take(1);
  expect(() => allowance.take(1)).toThrow(refused);
});

test('what tool calls record counts in bytes, not in characters', () => {
  const allowance = createToolAllowance();
  allowance.spend('', 'é'.repeat(toolCallBytes / 2));
  expect(() => allowance.spend('', 'x')).toThrow(refused);
});
