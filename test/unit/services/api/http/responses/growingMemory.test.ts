import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { readWithinGrowingMemory } from '../../../../../../services/api/http/responses/growingMemory.ts';
import { createResponseMemory } from '../../../../../../services/api/http/responses/responseMemory.ts';
import { memoryFor } from '../../../../../support/builders/memory.ts';

const MIB = 1_048_576;
/** An account's share of it is 4 MiB, of which one response counts 2 MiB at most. */
const ALL = 8 * MIB;

function memory() {
  const ledger = memoryFor('answers', ALL);
  const response = Object.assign(new EventEmitter(), { closed: false });
  const context = { memory: ledger, responseMemory: createResponseMemory(ledger, 60_000) };
  return {
    used: () => ledger.usage('answers').used,
    hold: (bytes: number) =>
      ledger.forceReserve({ account_id: 'a', purpose: 'answers', bytes }).release,
    read: <Result>(work: (grow: (bytes: number) => void) => Promise<Result>) =>
      readWithinGrowingMemory(context, 'a', response as unknown as ServerResponse, work),
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
