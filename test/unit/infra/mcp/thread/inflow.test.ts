import { describe, expect, test } from '@jest/globals';
import { createInflow } from '../../../../../infra/mcp/thread/inflow.ts';
import { createLineBuffer, createLineSplitter } from '../../../../../infra/mcp/thread/lines.ts';
import { createMessageMeter } from '../../../../../infra/mcp/thread/boundedFetch.ts';
import { LIMITS } from '../../../../../shared/limits.ts';

const { burstSeconds, bytesPerSecond, listingBytes, messagesPerSecond, strayLinesPerSecond } =
  LIMITS.mcp;

function measured() {
  const reasons: string[] = [];
  return { reasons, inflow: createInflow((reason) => reasons.push(reason)) };
}

describe('what a server sends', () => {
  test('may arrive in bursts, and then no more', () => {
    const { inflow, reasons } = measured();
    for (let n = 0; n < messagesPerSecond * burstSeconds; n += 1)
      expect(inflow.message()).toBe(true);
    expect(reasons).toEqual([]);
    for (let n = 0; n < 2 * messagesPerSecond * burstSeconds; n += 1) inflow.message();
    expect(reasons).toEqual(['it sends too many messages']);
    expect(inflow.bytes(1)).toBe(false);
  });

  test('is too much in single bytes, too', () => {
    const { inflow, reasons } = measured();
    for (let n = 0; n < (bytesPerSecond * burstSeconds) / 256; n += 1) inflow.bytes(1);
    expect(reasons).toEqual(['it sends too many bytes']);
  });

  test('is too much where many lines are not messages', () => {
    const { inflow, reasons } = measured();
    for (let n = 0; n < 2 * strayLinesPerSecond * burstSeconds; n += 1) inflow.strayLine();
    expect(reasons).toEqual(['it sends too much that is not a message']);
  });

  test('is limited further while the tools are listed', () => {
    const { inflow, reasons } = measured();
    const end = inflow.startListing();
    expect(inflow.bytes(listingBytes)).toBe(true);
    end();
    expect(inflow.bytes(1)).toBe(true);
    inflow.startListing();
    inflow.bytes(listingBytes + 1);
    expect(reasons).toEqual(['its list of tools is too long']);
  });
});

describe('lines', () => {
  const linesOf = (chunks: readonly string[], maxBytes = 100) => {
    let isTooLong = false;
    const { split } = createLineSplitter(maxBytes, () => (isTooLong = true));
    const lines = chunks.flatMap((chunk) => [...split(Buffer.from(chunk))].map(String));
    return { lines, isTooLong };
  };

  test.each([
    [['a\nb\nc'], ['a', 'b']],
    [
      ['a', 'b\n', '\nc', 'd\n'],
      ['ab', '', 'cd'],
    ],
    [['ä'.repeat(30), '\n'], ['ä'.repeat(30)]],
  ])('%j are %j', (chunks, lines) => {
    expect(linesOf(chunks)).toEqual({ lines, isTooLong: false });
  });

  test('end with one that is too long', () => {
    expect(linesOf(['a\n', 'x'.repeat(60), 'y'.repeat(60), '\nb\n'])).toEqual({
      lines: ['a'],
      isTooLong: true,
    });
  });
});

test('the beginning of a line is kept without its chunks, which take more memory than it', () => {
  const chunk = Buffer.from('abc');
  const wholeLines = createLineBuffer();
  const { split } = createLineSplitter(100, () => undefined);
  const read = [wholeLines(chunk), ...split(chunk)].filter((lines) => lines !== undefined);
  chunk.write('xyz');
  expect([read, String(wholeLines(Buffer.from('d\ne')))]).toEqual([[], 'abcd\n']);
  expect([...split(Buffer.from('d\ne'))].map(String)).toEqual(['abcd']);
  expect(String(wholeLines(Buffer.from('f\rg')))).toBe('ef\r');
});

test('lines of a message take more memory than their characters', () => {
  const meter = createMessageMeter(true, measured().inflow);
  const held = ['data:a\n', 'data:a\r', '\n', 'data:a\n', '\n', 'data:a'].map((chunk) =>
    meter(Buffer.from(chunk)),
  );
  expect(held.map((bytes) => bytes! > 60)).toEqual([true, true, true, true, false, false]);
});

describe('the body of a response', () => {
  const { messageBytes, messageValues } = LIMITS.mcp;
  function reasonFor(isStream: boolean, chunks: readonly string[]): string | undefined {
    const { inflow, reasons } = measured();
    const measure = createMessageMeter(isStream, inflow);
    for (const chunk of chunks) measure(Buffer.from(chunk));
    return reasons[0];
  }
  const values = (count: number) => `data: [${'1,'.repeat(count)}1]\n\n`;
  const third = 'x'.repeat(Math.ceil(messageBytes / 3));

  test('is measured message by message where it is a stream', () => {
    expect(reasonFor(true, Array(4).fill(`data: ${third}\n\n`))).toBeUndefined();
    expect(reasonFor(false, Array(4).fill(`${third}\n\n`))).toContain('too long');
    expect(reasonFor(true, Array(2).fill(values(0.6 * messageValues)))).toBeUndefined();
  });

  test('has a limited number of values, which texts don’t count for', () => {
    expect(reasonFor(false, [`{"a":${values(messageValues)}}`])).toContain('too many values');
    expect(reasonFor(false, [`{"a":"${',[{\\"'.repeat(messageValues)}"}`])).toBeUndefined();
    expect(reasonFor(true, ['x"\n', values(messageValues)])).toContain('too many values');
  });

  test.each(['\n', '\r', '\r\n'])('may end its lines with %j', (end) => {
    const bomb = `: "${end}${values(messageValues)}`;
    expect(reasonFor(true, [bomb])).toContain('too many values');
    expect(reasonFor(true, [bomb.slice(0, 4), bomb.slice(4)])).toContain('too many values');
    expect(reasonFor(true, Array(4).fill(`data: ${third}${end}${end}`))).toBeUndefined();
    expect(reasonFor(true, Array(4).fill(`data: ${third}${end}`))).toContain('too long');
    const flood = `data: {}${end}${end}`.repeat(2 * messagesPerSecond * burstSeconds);
    expect(reasonFor(true, [flood])).toBe('it sends too many messages');
  });

  test('is a flood where it has many messages', () => {
    const flood = 'data: {}\n\n'.repeat(2 * messagesPerSecond * burstSeconds);
    expect(reasonFor(true, [flood])).toBe('it sends too many messages');
  });
});
