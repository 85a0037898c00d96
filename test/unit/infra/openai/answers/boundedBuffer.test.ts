import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  createAnswerMemory,
  createBoundedBuffer,
} from '../../../../../infra/openai/answers/boundedBuffer.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { createMemoryLedger, type MemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';

const ample = () => createAnswerMemory(createMemoryLedger(), 'a');

test('a body is what came in, in whatever pieces', () => {
  const body = createBoundedBuffer(1_000_000, ample());
  const text = 'é😀'.repeat(10_000);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 7)
    expect(body.add(bytes.subarray(at, at + 7))).toBe(true);
  expect(body.text()).toBe(text);
});

test('a body keeps no more than its limit', () => {
  const body = createBoundedBuffer(10, ample());
  expect([body.add(Buffer.from('12345678')), body.isFull()]).toEqual([true, false]);
  expect([body.add(Buffer.from('90ab')), body.isFull()]).toEqual([false, true]);
  expect(body.text()).toBe('1234567890');
});

test('the bodies of an account keep no more than its share, and give back what they had', () => {
  const ledger = memoryFor('modelAnswers', 40);
  const bodyOf = (account_id: string) =>
    createBoundedBuffer(1_000, createAnswerMemory(ledger, account_id));
  const [one, other, strangers] = [bodyOf('a'), bodyOf('a'), bodyOf('b')];
  expect(one.add(Buffer.alloc(15))).toBe(true);
  expect(other.add(Buffer.alloc(15))).toBe(false);
  expect(strangers.add(Buffer.alloc(10))).toBe(true);
  expect(ledger.usage('modelAnswers')).toMatchObject({ used: 25, rejections: 1 });
  one.release();
  strangers.release();
  expect(ledger.usage('modelAnswers')).toMatchObject({ used: 0, reservations: 0 });
  expect(other.add(Buffer.alloc(15))).toBe(true);
});

test('what a body had is free at once, without a collector', () => {
  const chunk = Buffer.alloc(65_536);
  const { answerBytes } = LIMITS.model;
  const before = process.memoryUsage().arrayBuffers;
  const body = createBoundedBuffer(answerBytes, ample());
  for (let size = 0; size < answerBytes; size += chunk.length) body.add(chunk);
  const grown = process.memoryUsage().arrayBuffers - before;
  body.release();
  const kept = process.memoryUsage().arrayBuffers - before;
  expect(grown).toBeLessThan(1.2 * answerBytes);
  expect(kept).toBeLessThan(0.1 * answerBytes);
});

describe('memory that is held for an answer in use', () => {
  const used = () => ledger.usage('modelAnswers').used;
  let ledger: MemoryLedger;
  beforeEach(() => {
    ledger = memoryFor('modelAnswers', 40);
  });

  test('replaces that of its buffer', () => {
    const memory = createAnswerMemory(ledger, 'a');
    const body = createBoundedBuffer(8, memory);
    body.add(Buffer.alloc(8));
    const release = memory.hold(6)!;
    expect(used()).toBe(8);
    body.release();
    expect(used()).toBe(6);
    release();
    release();
    expect(ledger.usage('modelAnswers')).toMatchObject({ used: 0, reservations: 0 });
  });

  test('is that of its buffer where there is no more', () => {
    const memory = createAnswerMemory(ledger, 'a');
    const body = createBoundedBuffer(8, memory);
    body.add(Buffer.alloc(8));
    const release = memory.hold(1_000)!;
    body.release();
    expect(used()).toBe(8);
    release();
    expect(used()).toBe(0);
  });

  test('counts an answer without a buffer, which is refused beyond the share', () => {
    const release = createAnswerMemory(ledger, 'a').hold(18)!;
    expect(createAnswerMemory(ledger, 'a').hold(18)).toBeUndefined();
    expect(ledger.usage('modelAnswers')).toMatchObject({
      used: 18,
      reservations: 1,
      rejections: 1,
    });
    release();
    expect(createAnswerMemory(ledger, 'a').hold(18)).toBeDefined();
  });
});
