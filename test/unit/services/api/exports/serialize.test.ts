import { afterEach, expect, jest, test } from '@jest/globals';
import { encode } from '../../../../../services/api/exports/serialize.ts';

afterEach(() => {
  jest.restoreAllMocks();
});

test('texts that take long to make, however short they are, leave time for other requests', async () => {
  let now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  let loopTurns = 0;
  const countTurns = (): void => {
    loopTurns += 1;
    counting = setImmediate(countTurns);
  };
  let counting = setImmediate(countTurns);
  const madeAt = new Set<number>();
  async function* slowTexts(): AsyncGenerator<string> {
    for (let text = 0; text < 12; text += 1) {
      now += 2;
      madeAt.add(loopTurns);
      yield `${text};`;
    }
  }
  let encoded = '';
  for await (const chunk of encode(slowTexts(), 'acct_1')) encoded += chunk.toString();
  clearImmediate(counting);
  expect(encoded).toBe('0;1;2;3;4;5;6;7;8;9;10;11;');
  expect(madeAt.size).toBeGreaterThanOrEqual(6);
});
