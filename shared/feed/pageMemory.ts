import type { Permit } from '../lib/concurrency/capacity.ts';
import { LIMITS } from '../limits.ts';
import type { FeedSlice } from './feedPosition.ts';

export interface FeedMemory {
  /** Reserves the bytes if they are available. */
  tryReserve(bytes: number): Permit | undefined;
  /** Waits for the bytes. Throws `rate_limited`, `overloaded` or the abort reason. */
  reserve(bytes: number, signal: AbortSignal): Promise<Permit>;
}

const memoryOf = ({ events }: FeedSlice): number =>
  LIMITS.feed.memoryPerByte * events.reduce((sum, { bytes }) => sum + bytes, 0);

interface ReservedSlice<Slice> {
  slice: Slice;
  permit: Permit | undefined;
}

/**
 * Reads a slice and reserves memory for its events: as stored, decrypted, as JSON and as sent. Without
 * free memory, the events do not wait in memory: they are dropped, and read again when there is some.
 */
export async function reserveSlice<Slice extends FeedSlice>(
  memory: FeedMemory,
  signal: AbortSignal,
  read: () => Promise<Slice>,
): Promise<ReservedSlice<Slice>> {
  async function attempt(): Promise<ReservedSlice<Slice> | { needed: number }> {
    const slice = await read();
    const needed = memoryOf(slice);
    const permit = needed === 0 ? undefined : memory.tryReserve(needed);
    return permit || needed === 0 ? { slice, permit } : { needed };
  }

  const first = await attempt();
  if ('slice' in first) return first;
  // The slice may have grown to a full page until there is memory.
  const { memoryPerByte, pageBytes } = LIMITS.feed;
  const reserved = Math.max(first.needed, memoryPerByte * pageBytes);
  const permit = await memory.reserve(reserved, signal);
  try {
    const slice = await read();
    const needed = memoryOf(slice);
    if (needed < reserved) permit.resize(needed);
    return { slice, permit };
  } catch (error) {
    permit.release();
    throw error;
  }
}

/** The memory of a page: released when neither the feed nor a consumer of the page holds it. */
export function holdPage(permit: Permit | undefined): {
  retain: () => () => void;
  release: () => void;
} {
  let holders = 0;
  function retain(): () => void {
    let isHeld = true;
    holders += 1;
    return () => {
      if (isHeld) holders -= 1;
      isHeld = false;
      if (holders === 0) permit?.release();
    };
  }
  return { retain, release: retain() };
}
