import type { Capacity } from '../../../shared/lib/concurrency/capacity.ts';
import {
  createMemoryLedger,
  type MemoryLedger,
  type MemoryPurpose,
} from '../../../shared/lib/memory/ledger.ts';

/** A ledger with so many bytes for one purpose. */
export const memoryFor = (purpose: MemoryPurpose, bytes: number): MemoryLedger =>
  createMemoryLedger({ [purpose]: { all: { permits: Infinity, bytes } } });

/** A ledger with a capacity for runs, whether they wait or are in flight. */
export const memoryForRuns = (all: Capacity, share?: Capacity): MemoryLedger => {
  const waiting = { permits: 4_000, bytes: all.bytes };
  return createMemoryLedger({
    prompts: share ? { all, share } : { all },
    waitingRuns: { all: waiting },
  });
};
