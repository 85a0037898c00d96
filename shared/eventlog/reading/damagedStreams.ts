import { LIMITS } from '../../limits.ts';
import type { StreamDamage } from './streamDamage.ts';

/** The most streams that are remembered. */
const MAX_STREAMS = 10_000;
/** Background work skips a stream for this long after it was found damaged. */
const RECENT_MS = 60_000;

/** Revisions that were read without a flaw. Reads always check revision 0. */
interface ReadRange {
  from: number;
  to: number;
}

/** The streams that this process found damaged, as shown to operators. */
export interface DamagedStreams {
  record(damage: StreamDamage): void;
  /**
   * Removes a stream that was read without a flaw, unless its flaw is outside the range that was
   * read.
   */
  clear(stream: string, read: ReadRange): void;
  has(stream: string): boolean;
  /** True for a stream that was found damaged within the last minute. */
  wasFoundRecently(stream: string): boolean;
  /** The last hundred, oldest first. */
  list(): StreamDamage[];
  /** The number of remembered streams. */
  count(): number;
}

interface DamageRecord {
  damage: StreamDamage;
  at: number;
}

/**
 * `onFound` is called when a stream is first found damaged. `now` returns monotonic milliseconds.
 */
export function createDamagedStreams(
  onFound: (damage: StreamDamage) => void,
  now: () => number = () => performance.now(),
): DamagedStreams {
  const streams = new Map<string, DamageRecord>();
  return {
    record(damage) {
      const { stream } = damage;
      if (!streams.has(stream)) {
        const [oldest] = streams.keys();
        if (streams.size >= MAX_STREAMS && oldest !== undefined) streams.delete(oldest);
        onFound(damage);
      }
      streams.set(stream, { damage, at: now() });
    },
    clear(stream, { from, to }) {
      const flaw = streams.get(stream)?.damage.revision;
      if (flaw === undefined || flaw === 0 || (flaw >= from && flaw <= to)) streams.delete(stream);
    },
    has: (stream) => streams.has(stream),
    wasFoundRecently: (stream) => now() - (streams.get(stream)?.at ?? -Infinity) < RECENT_MS,
    list: () => [...streams.values()].slice(-LIMITS.health.streams).map(({ damage }) => damage),
    count: () => streams.size,
  };
}
