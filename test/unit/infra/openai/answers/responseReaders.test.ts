import { describe, expect, test } from '@jest/globals';
import { createAnswerMemory } from '../../../../../infra/openai/answers/boundedBuffer.ts';
import { createWholeBodyReader } from '../../../../../infra/openai/answers/responseReaders.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';

const TEXT = '{"é":"😀"}';
const BYTES = Buffer.from(TEXT);

/** Reads the pieces, and returns the outcome and the memory that was reserved before the end. */
function read(status: number, declaredBytes: number, pieces: readonly Buffer[]) {
  const ledger = createMemoryLedger();
  const reader = createWholeBodyReader(status, declaredBytes, createAnswerMemory(ledger, 'a'));
  const early = pieces.map((piece) => reader.add(piece)).find((result) => result !== undefined);
  const { used } = ledger.usage('modelAnswers');
  const result = early ?? reader.end();
  reader.release();
  expect(ledger.usage('modelAnswers').used).toBe(0);
  return { result, used };
}

describe('a body', () => {
  test('in one piece of the declared length is not copied', () => {
    expect(read(200, BYTES.length, [BYTES])).toEqual({ result: TEXT, used: 0 });
  });

  test.each([
    ['in pieces', BYTES.length, [BYTES.subarray(0, 5), BYTES.subarray(5)]],
    ['of no declared length', NaN, [BYTES]],
  ])('%s is collected in memory that is counted', (_, declaredBytes, pieces) => {
    const { result, used } = read(200, declaredBytes, pieces);
    expect({ result, isCounted: used > 0 }).toEqual({ result: TEXT, isCounted: true });
  });
});

test('of a long error only the beginning is read, though it arrives in one piece', () => {
  const long = Buffer.alloc(1_000_000, 'x');
  const { result } = read(500, long.length, [long]);
  expect((result as string).length).toBeLessThan(long.length);
});
