import type { FeedMemory } from '../../../shared/feed/pageMemory.ts';
import type { Capacity, Permit } from '../../../shared/lib/concurrency/capacity.ts';
import {
  createMemoryLedger,
  type MemoryLedger,
  type MemoryPurpose,
} from '../../../shared/lib/memory/ledger.ts';

/** A ledger with so many bytes for one purpose. */
export const memoryFor = (purpose: MemoryPurpose, bytes: number): MemoryLedger =>
  createMemoryLedger({ [purpose]: { all: { permits: Infinity, bytes } } });

/** A permit of any size. */
export const permitWith = (release: () => void): Permit => ({
  resize: () => true,
  countRejection: () => {},
  release,
  [Symbol.dispose]: release,
});

/** Memory without a limit, for followers of a feed. */
export const unlimitedFeedMemory: FeedMemory = {
  tryReserve: () => permitWith(() => {}),
  reserve: () => Promise.reject(new Error('there is always memory')),
};

/** A ledger with a capacity for runs, whether they wait or are in flight. */
export const memoryForRuns = (all: Capacity, share?: Capacity): MemoryLedger => {
  const waiting = { permits: 4_000, bytes: all.bytes };
  return createMemoryLedger({
    prompts: share ? { all, share } : { all },
    waitingRuns: { all: waiting },
  });
};
