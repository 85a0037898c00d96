import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { createStreamedAnswerReader } from '../../../../../infra/openai/answers/streamedAnswer.ts';
import { createAnswerMemory } from '../../../../../infra/openai/answers/boundedBuffer.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';

const LONG = 1_000_000;
const STREAMS = 10;
const long = 'x'.repeat(LONG);

setFlagsFromString('--expose_gc');
const collectGarbage = runInNewContext('gc') as () => void;
const heap = (): number => {
  collectGarbage();
  return process.memoryUsage().heapUsed;
};

test('a stream keeps nothing in memory of long names and a long usage that is not counted', () => {
  const ledger = createMemoryLedger();
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

const PARTS_OF_CHUNK = 500;
const CHUNKS = 600;

test('a call whose parts each have another index keeps none of them in memory', () => {
  const memory = createAnswerMemory(createMemoryLedger(), 'a');
  const reader = createStreamedAnswerReader({ onText: () => undefined }, memory);
  const before = heap();
  for (let chunk = 0; chunk < CHUNKS; chunk += 1) {
    const tool_calls = Array.from({ length: PARTS_OF_CHUNK }, (_, part) => ({
      index: chunk * PARTS_OF_CHUNK + part,
      id: 'c',
    }));
    const data = JSON.stringify({ choices: [{ delta: { tool_calls } }] });
    expect(reader.add(Buffer.from(`data: ${data}\n\n`))).toBeUndefined();
  }
  expect(heap() - before).toBeLessThan(5 * CHUNKS * PARTS_OF_CHUNK);
  reader.release();
});
