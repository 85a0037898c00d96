import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { expect, jest, test } from '@jest/globals';
import {
  readHoldingMemory,
  readWithinGrowingMemory,
} from '../../../../../../services/api/http/responses/growingMemory.ts';
import { createResponseMemory } from '../../../../../../services/api/http/responses/responseMemory.ts';
import { memoryFor } from '../../../../../support/builders/memory.ts';

const MIB = 1_048_576;
/** An account's share of it is 4 MiB, of which one response counts 2 MiB at most. */
const ALL = 8 * MIB;

function memory() {
  const ledger = memoryFor('answers', ALL);
  const response = Object.assign(new EventEmitter(), { closed: false });
  const target = { account_id: 'a', response: response as unknown as ServerResponse };
  const context = { memory: ledger, responseMemory: createResponseMemory(ledger, 60_000) };
  return {
    used: () => ledger.usage('answers').used,
    hold: (bytes: number) =>
      ledger.forceReserve({ account_id: 'a', purpose: 'answers', bytes }).release,
    read: <Result>(work: (grow: (bytes: number) => void) => Promise<Result>, bytes = 0) =>
      readWithinGrowingMemory(context, { ...target, bytes }, work),
    readHolding: <Result>(work: (grow: (bytes: number) => void) => Promise<Result>) =>
      readHoldingMemory(context, { ...target, bytes: 0 }, work),
  };
}

test('a read larger than a share succeeds, and counts half of the share', async () => {
  const { used, read } = memory();
  const counted = await read(async (grow) => {
    for (let bytes = 0; bytes <= 16 * MIB; bytes += MIB) grow(bytes);
    return used();
  });
  expect([counted, used()]).toEqual([2 * MIB, 0]);
});

test('a read that must wait holds nothing meanwhile, and then starts again', async () => {
  const { used, hold, read } = memory();
  const release = hold(3.5 * MIB);
  let attempts = 0;
  const reading = read(async (grow) => {
    attempts += 1;
    grow(MIB / 4);
    grow(MIB);
    return used();
  });
  await setImmediate();
  expect([attempts, used()]).toEqual([1, 3.5 * MIB]);
  release();
  expect([await reading, attempts, used()]).toEqual([2 * MIB, 2, 0]);
});

test('a read that fails releases its memory', async () => {
  const { used, read } = memory();
  const failing = read(async (grow) => {
    grow(MIB);
    throw new Error('failed');
  });
  await expect(failing).rejects.toThrow('failed');
  expect(used()).toBe(0);
});

test('a read that waits for its first bytes begins once, when it has them', async () => {
  const { used, hold, read } = memory();
  const release = hold(3.5 * MIB);
  let attempts = 0;
  const reading = read(async (grow) => {
    attempts += 1;
    grow(MIB);
    return used();
  }, MIB);
  await setImmediate();
  expect(attempts).toBe(0);
  release();
  expect([await reading, attempts, used()]).toEqual([MIB, 1, 0]);
});

test('all waits of a read end at one deadline', async () => {
  jest.useFakeTimers();
  try {
    const { used, hold, read } = memory();
    const release = hold(3.5 * MIB);
    let outcome: unknown = 'waits';
    read(async (grow) => {
      hold(3.5 * MIB);
      grow(2 * MIB);
    }, MIB).catch((error: unknown) => (outcome = error));
    await jest.advanceTimersByTimeAsync(40_000);
    release();
    await jest.advanceTimersByTimeAsync(19_999);
    expect(outcome).toBe('waits');
    await jest.advanceTimersByTimeAsync(1);
    expect(outcome).toMatchObject({ code: 'rate_limited' });
    expect(used()).toBe(3.5 * MIB);
  } finally {
    jest.useRealTimers();
  }
});

test('a result holds the memory that it needs until it is released', async () => {
  const { used, readHolding } = memory();
  const { result, shrinkTo, release } = await readHolding(async (grow) => {
    grow(MIB);
    return used();
  });
  expect([result, used()]).toEqual([MIB, MIB]);
  shrinkTo(2 * MIB);
  expect(used()).toBe(MIB);
  shrinkTo(MIB / 2);
  expect(used()).toBe(MIB / 2);
  release();
  expect(used()).toBe(0);
});
