import { describe, expect, jest, test } from '@jest/globals';
import type { LoggedEvent } from '../../../../shared/feed/loggedEvents.ts';
import { holdPage, reserveSlice, type FeedMemory } from '../../../../shared/feed/pageMemory.ts';
import { permitWith } from '../../../support/builders/memory.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { createMemoryLedger, type MemoryLedger } from '../../../../shared/lib/memory/ledger.ts';

const { memoryPerByte, pageBytes } = LIMITS.feed;
const NEVER = new AbortController().signal;

/** The memory of an account whose share is so many bytes. */
function memoryOf(ledger: MemoryLedger, account_id = 'acct_1'): FeedMemory {
  const purpose = 'answers';
  return {
    tryReserve: (bytes) => ledger.tryReserve({ account_id, purpose, bytes }),
    reserve: (bytes, signal) =>
      ledger.reserve({ account_id, purpose, bytes }, { waitMs: 60_000, signal }),
  };
}
const ledgerOf = (bytes: number): MemoryLedger =>
  createMemoryLedger({ answers: { all: { permits: Infinity, bytes } } });

const sliceOf = (...sizes: readonly number[]) => ({
  events: sizes.map((bytes) => ({ bytes }) as LoggedEvent),
  position: { resumesAfter: undefined, cursor: undefined, scannedTo: '' },
  caughtUp: true,
});

describe('the memory of a slice', () => {
  test('is some bytes for each stored byte of its events', async () => {
    const ledger = ledgerOf(1_000_000);
    const { permit } = await reserveSlice(memoryOf(ledger), NEVER, async () => sliceOf(100, 200));
    expect(ledger.usage('answers').used).toBe(300 * memoryPerByte);
    permit!.release();
    const empty = await reserveSlice(memoryOf(ledger), NEVER, async () => sliceOf());
    expect(empty.permit).toBeUndefined();
    expect(ledger.usage('answers').used).toBe(0);
  });

  test('is waited for without the slice, which is read again with the events that came meanwhile', async () => {
    const full = memoryPerByte * pageBytes;
    const ledger = ledgerOf(4 * full);
    const [first, second] = [ledger, ledger].map((own) =>
      own.reserveNow({ account_id: 'acct_1', purpose: 'answers', bytes: full }),
    );
    let sizes = [100];
    const read = jest.fn(async () => sliceOf(...sizes));
    const reserving = reserveSlice(memoryOf(ledger), NEVER, read);
    let isReserved = false;
    void reserving.then(() => (isReserved = true));
    await new Promise(setImmediate);
    expect([read.mock.calls.length, isReserved]).toEqual([1, false]);
    sizes = [100, 300];
    second!.release();
    const { slice, permit } = await reserving;
    expect(slice.events).toHaveLength(2);
    expect(ledger.usage('answers').used).toBe(full + 400 * memoryPerByte);
    for (const held of [first!, permit!]) held.release();
    expect(ledger.usage('answers').used).toBe(0);
  });

  test('is released when the slice can not be read again', async () => {
    const memory: FeedMemory = {
      tryReserve: () => undefined,
      reserve: async () => permitWith(release),
    };
    const release = jest.fn();
    let reads = 0;
    const read = async () => {
      reads += 1;
      if (reads > 1) throw new Error('away');
      return sliceOf(100);
    };
    await expect(reserveSlice(memory, NEVER, read)).rejects.toThrow('away');
    expect(release).toHaveBeenCalledTimes(1);
  });
});

test('a page is held until neither the feed nor a consumer needs it, each of them once', () => {
  const released = jest.fn();
  const page = holdPage(permitWith(released));
  const [one, two] = [page.retain(), page.retain()];
  page.release();
  page.release();
  one();
  one();
  expect(released).not.toHaveBeenCalled();
  two();
  expect(released).toHaveBeenCalled();
});
