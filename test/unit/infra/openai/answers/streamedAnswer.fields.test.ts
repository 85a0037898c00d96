import { expect, test } from '@jest/globals';
import { createStreamedAnswerReader } from '../../../../../infra/openai/answers/streamedAnswer.ts';

const memory = { reserve: (bytes?: number) => bytes, release: () => undefined };

const PARTS = 8_000;
const MOST_MS = 1_000;

function chunkOf(calls: object[], finish_reason: string | null = null): string {
  const choices = [{ index: 0, delta: { tool_calls: calls }, finish_reason }];
  return `data: ${JSON.stringify({ id: 'a', model: 'm', choices })}\n\n`;
}

test('fields of a call that arrive in thousands of parts are joined without holding up others', () => {
  const reader = createStreamedAnswerReader({ onText: () => undefined }, memory);
  reader.add(Buffer.from(chunkOf([{ index: 0, id: 'c', function: { name: 'f' } }])));
  for (let part = 0; part < PARTS; part += 1)
    reader.add(
      Buffer.from(chunkOf([{ index: 0, [`f${part}`]: part, function: { [`g${part}`]: part } }])),
    );
  reader.add(Buffer.from(chunkOf([], 'tool_calls')));
  const startedAt = performance.now();
  const answer = reader.end?.();
  expect(performance.now() - startedAt).toBeLessThan(MOST_MS);
  reader.release();
  const [call] = (
    JSON.parse(answer as string) as { choices: { message: { tool_calls: object[] } }[] }
  ).choices[0]!.message.tool_calls;
  expect(call).toMatchObject({ id: 'c', f0: 0, f99: 99, function: { name: 'f', g0: 0, g99: 99 } });
});
