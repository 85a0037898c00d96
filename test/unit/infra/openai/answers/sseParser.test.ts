import { expect, test } from '@jest/globals';
import { createAnswerMemory } from '../../../../../infra/openai/answers/boundedBuffer.ts';
import { createSseParser } from '../../../../../infra/openai/answers/sseParser.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';

/** What a body is read in. */
const STEP_BYTES = 8_192;

/** Reads bytes in steps. Returns the data of the events, how it ended, and the memory that is reserved. */
function parse(bytes: Buffer, stepBytes: number, limit = 1_000_000) {
  const ledger = createMemoryLedger();
  const parser = createSseParser(limit, createAnswerMemory(ledger, 'a'));
  const events: string[] = [];
  let status = 'ok';
  for (let at = 0; at < bytes.length && status === 'ok'; at += stepBytes)
    status = parser.add(bytes.subarray(at, at + stepBytes), (data) => {
      events.push(data);
      return 'on';
    });
  const { used } = ledger.usage('modelAnswers');
  parser.release();
  return { events, status, used, left: ledger.usage('modelAnswers').used };
}

test('the lines of an event are joined, wherever its bytes are divided', () => {
  const bytes = Buffer.from(
    'data: ä\n: x\ndata:\ndata: b\n\nid: 1\n\ndata:\n\n\r\ndata:c\r\rdata: d\n',
  );
  for (let stepBytes = 1; stepBytes <= bytes.length; stepBytes += 1)
    expect(parse(bytes, stepBytes)).toMatchObject({
      events: ['ä\n\nb', '', 'c'],
      status: 'ok',
      left: 0,
    });
});

test('millions of lines of one event take a byte each, which is reserved', () => {
  const { status, used } = parse(Buffer.from('data:\n'.repeat(500_000)), STEP_BYTES);
  expect(status).toBe('ok');
  expect(used).toBeGreaterThan(500_000);
});

test.each([
  ['lines', 'data: 12345\n'.repeat(100)],
  ['empty lines', 'data:\n'.repeat(1_000)],
])('an event of many %s is no longer than the limit', (_, lines) => {
  for (const stepBytes of [7, 64, STEP_BYTES])
    expect(parse(Buffer.from(lines), stepBytes, 200).status).toBe('full');
});

test('a byte order mark at the beginning belongs to no line', () => {
  const bytes = Buffer.from('\uFEFFdata: a\n\ndata: \uFEFFb\n\n\uFEFFdata: c\n\n');
  for (let stepBytes = 1; stepBytes <= bytes.length; stepBytes += 1)
    expect(parse(bytes, stepBytes).events).toEqual(['a', '\uFEFFb']);
});
