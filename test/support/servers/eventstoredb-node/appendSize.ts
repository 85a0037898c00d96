import type { Proposed } from './types.ts';
import type { ServerVersion } from './versions.ts';

/** What is too large about an append. */
export type Excess =
  { kind: 'append'; limit: number } | { kind: 'event'; id: string; size: number; limit: number };

export type Meter = (event: Proposed) => Excess | undefined;

/**
 * Measures the events of one append as they come (`Event.SizeOnDisk` in EventStore.Core): answers
 * once it is too large.
 */
export function appendMeter({ countsTypes, maxAppendSize, maxEventSize }: ServerVersion): Meter {
  let total = 0;
  return ({ id, type, data, metadata }) => {
    const size = data.length + metadata.length + (countsTypes ? type.length * 2 : 0);
    total += size;
    if (size > maxEventSize) return { kind: 'event', id, size, limit: maxEventSize };
    return total > maxAppendSize ? { kind: 'append', limit: maxAppendSize } : undefined;
  };
}
