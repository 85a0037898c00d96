import { LIMITS } from '../../limits.ts';
import type { StreamDamage } from './streamDamage.ts';

/** More are not remembered. */
const MAX_STREAMS = 10_000;
/** Who looks after many streams leaves one alone for so long after it was found damaged. */
const RECENT_MS = 60_000;

/** Revisions that were read without a fault; revision 0 is always among what was looked at. */
interface ReadRange {
  from: number;
  to: number;
}

/** The streams that this process found damaged, for an operator to see. */
export interface DamagedStreams {
  record(damage: StreamDamage): void;
  /**
   * A stream was read without a fault: it leaves the list unless its flaw lies outside of what was
   * read.
   */
  clear(stream: string, read: ReadRange): void;
  has(stream: string): boolean;
  /** True for a stream that was found damaged, by whomever, within the last minute. */
  wasFoundRecently(stream: string): boolean;
  /** The last hundred, in the order in which they were found. */
  list(): StreamDamage[];
  /** How many are remembered. */
  count(): number;
}

interface DamageRecord {
  damage: StreamDamage;
  at: number;
}

/**
 * `onFound` is called when a stream is found damaged, and not again while it is remembered. `now`
 * in milliseconds of a monotonic clock.
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
