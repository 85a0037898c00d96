import { expect, test } from '@jest/globals';
import { createBoundedBuffer } from '../../../../infra/openai/boundedBuffer.ts';
import { LIMITS } from '../../../../shared/limits.ts';

test('a body is what came in, in whatever pieces', () => {
  const body = createBoundedBuffer(1_000_000, { bytes: 0, rejected: 0 });
  const text = 'é😀'.repeat(10_000);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 7)
    expect(body.add(bytes.subarray(at, at + 7))).toBe(true);
  expect(body.text()).toBe(text);
});

test('a body keeps no more than its limit', () => {
  const body = createBoundedBuffer(10, { bytes: 0, rejected: 0 });
  expect([body.add(Buffer.from('12345678')), body.isFull()]).toEqual([true, false]);
  expect([body.add(Buffer.from('90ab')), body.isFull()]).toEqual([false, true]);
  expect(body.text()).toBe('1234567890');
});

test('bodies together keep no more than their limit, and give back what they had', () => {
  const inProgress = { bytes: LIMITS.model.answersBytes - 10, rejected: 0 };
  const [one, other] = [
    createBoundedBuffer(1_000, inProgress),
    createBoundedBuffer(1_000, inProgress),
  ];
  expect(one.add(Buffer.alloc(10))).toBe(true);
  expect(other.add(Buffer.alloc(10))).toBe(false);
  one.release();
  expect(inProgress.bytes).toBe(LIMITS.model.answersBytes - 10);
});

test('what a body had is free at once, without a collector', () => {
  const chunk = Buffer.alloc(65_536);
  const { answerBytes } = LIMITS.model;
  const before = process.memoryUsage().arrayBuffers;
  const body = createBoundedBuffer(answerBytes, { bytes: 0, rejected: 0 });
  for (let size = 0; size < answerBytes; size += chunk.length) body.add(chunk);
  const grown = process.memoryUsage().arrayBuffers - before;
  body.release();
  const kept = process.memoryUsage().arrayBuffers - before;
  expect(grown).toBeLessThan(1.2 * answerBytes);
  expect(kept).toBeLessThan(0.1 * answerBytes);
});
