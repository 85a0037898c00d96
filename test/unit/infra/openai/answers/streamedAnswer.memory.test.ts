import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { createStreamedAnswerReader } from '../../../../../infra/openai/answers/streamedAnswer.ts';
import { createAnswerMemory } from '../../../../../infra/openai/answers/boundedBuffer.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';

const LONG = 1_000_000;
const STREAMS = 10;
const long = 'x'.repeat(LONG);

test('a stream keeps nothing in memory of long names and a long usage that is not counted', () => {
  setFlagsFromString('--expose_gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const ledger = createMemoryLedger();
  const heap = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = heap();
  const readers = Array.from({ length: STREAMS }, () => {
    const memory = createAnswerMemory(ledger, 'a');
    const reader = createStreamedAnswerReader({ onText: () => undefined }, memory);
    const chunks = [
      { id: long },
      { model: long },
      { choices: [{ finish_reason: long }] },
      { usage: { prompt_tokens: 1, completion_tokens: 2, more: long } },
    ];
    for (const chunk of chunks) reader.add(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`));
    return reader;
  });
  expect(heap() - before).toBeLessThan((STREAMS * LONG) / 2);
  for (const reader of readers) {
    const { id, usage } = JSON.parse(reader.end() as string) as { id: string; usage: object };
    expect(long).toMatch(id);
    expect(usage).toEqual({ prompt_tokens: 1, completion_tokens: 2 });
  }
});
