import { expect, jest, test } from '@jest/globals';
import {
  maxMessages,
  newestTurnsThatFit,
  promptChars,
  promptMemory,
} from '../../../../../shared/runs/model/contextWindow.ts';
import { turnMessages } from '../../../../../shared/sessions/turns/prompt.ts';
import type { TokenBudget } from '../../../../../shared/runs/context.ts';
import { toolCallData } from '../../../../support/builders/events.ts';

const budget = {
  counter: { count: async () => 1, longestToken: 8 },
  turnTokens: new Map(),
} as unknown as TokenBudget;
const owner = { session_id: 'session_1', actor: { account_id: 'acct_1' } };
const turns = [0, 2, 0, 1, 0].map((calls, index) => ({
  turn: index + 1,
  input: 'in',
  tool_calls: Array.from({ length: calls }, () => toolCallData(index + 1)),
  output: 'out',
}));

/** The last three turns have 2, 4 and 2 messages, and the second one has 6. */
test.each([
  [1, []],
  [2, [5]],
  [7, [4, 5]],
  [13, [3, 4, 5]],
  [14, [2, 3, 4, 5]],
  [16, [1, 2, 3, 4, 5]],
])('of turns that fit otherwise, those of %i messages are shown', async (messages, shown) => {
  const limits = { tokens: 10_000, bytes: 10_000, messages };
  const found = await newestTurnsThatFit(budget, limits, owner, turns);
  expect(found.map(({ turn }) => turn)).toEqual(shown);
});

test('the memory of a prompt of short turns is more than that of their texts', () => {
  const request = { agent: { instruction: 'x' }, input: 'x' } as never;
  expect(promptMemory(request, turns) - promptMemory(request, [])).toBeGreaterThanOrEqual(
    200 * maxMessages(turns),
  );
});

test('the length of a prompt is known without writing its tool calls', () => {
  const extra = '{"a":[{},{}]}';
  const calls = [
    toolCallData(1, { arguments: '{}', result: 'four' }),
    { ...toolCallData(1), extra },
  ];
  const turn = { turn: 1, input: 'in', output: 'out', tool_calls: calls };
  const stringify = jest.spyOn(JSON, 'stringify');
  const chars = promptChars(turnMessages(turn));
  expect(stringify).not.toHaveBeenCalled();
  stringify.mockRestore();
  const { arguments: args, result } = toolCallData(1);
  expect(chars).toBe(['in', '{}', 'four', args, extra, result, 'out'].join('').length);
});

test('the tokens of a turn are counted once', async () => {
  let counted = 0;
  const counting = {
    counter: { count: async () => (counted += 1), longestToken: 8 },
    turnTokens: new Map(),
  } as unknown as TokenBudget;
  const limits = { tokens: 10, bytes: 10_000, messages: 100 };
  await newestTurnsThatFit(counting, limits, owner, turns);
  const first = counted;
  expect(first).toBeGreaterThan(0);
  await newestTurnsThatFit(counting, limits, owner, turns);
  expect(counted).toBe(first);
});
