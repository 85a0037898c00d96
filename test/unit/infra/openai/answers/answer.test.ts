import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { parseAnswer } from '../../../../../infra/openai/answers/answer.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import type { ChatAnswer } from '../../../../../shared/ports/chatModel.ts';

const answerOf = (message: object, more: object = {}): ChatAnswer =>
  parseAnswer(JSON.parse(JSON.stringify({ choices: [{ message }], ...more })), 'm');
const callOf = (id: string): object => ({ id, function: { name: 'f', arguments: '{}' } });

test('of thousands of calls whose ids collide, one more than the limit of a turn is named', () => {
  const half = 2_500;
  const taken = Array.from({ length: half }, (_, index) => callOf(`a_${half + 2 + index}`));
  const calls = [callOf('a'), ...taken, ...taken.map(() => callOf('a'))];
  const { tool_calls } = answerOf({ content: null, tool_calls: calls });
  expect(tool_calls).toHaveLength(LIMITS.run.toolCalls + 1);
});

test('calls with the same id get distinct ids', () => {
  const { tool_calls } = answerOf({ tool_calls: ['a', 'a_3', 'a', ''].map(callOf) });
  expect(tool_calls.map(({ id }) => id)).toEqual(['a', 'a_3', 'a_4', 'call_4']);
});

test.each([
  ['a total that is less than both', 1, 5],
  ['no total', undefined, 5],
  ['a total with further tokens', 9, 9],
])('of %s, the recorded total is at least what was used', (_, total_tokens, total) => {
  const usage = { prompt_tokens: 2, completion_tokens: 3, total_tokens };
  expect(answerOf({ content: 'Hi' }, { usage }).tokens).toEqual({
    prompt: 2,
    completion: 3,
    total,
  });
});

const LONG = 1_000_000;
const ANSWERS = 10;

test('an answer keeps no more in memory of a long id or reasoning than it records', () => {
  setFlagsFromString('--expose_gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const heap = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = heap();
  const answers = Array.from({ length: ANSWERS }, () =>
    answerOf({ content: 'Hi', reasoning: 'r'.repeat(LONG) }, { id: 'i'.repeat(LONG) }),
  );
  expect(heap() - before).toBeLessThan((ANSWERS * LONG) / 2);
  for (const { response_id, reasoning } of answers) {
    expect(response_id).toHaveLength(LIMITS.model.labelChars);
    expect(reasoning).toHaveLength(LIMITS.model.reasoningChars);
  }
});

test.each([
  ['the one of index 0, wherever it is', [1, 0], 'choice 0'],
  ['the first one where none has an index', [undefined, undefined], 'choice undefined'],
])('of several choices, the answer is %s', (_, indexes, content) => {
  const choices = indexes.map((index) => ({ index, message: { content: `choice ${index}` } }));
  expect(parseAnswer({ choices }, 'm').content).toBe(content);
});
