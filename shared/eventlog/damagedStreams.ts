import type { StreamDamage } from './wholeStream.ts';

/** More are not remembered: an operator who has so many looks into the store, not into a list. */
const MOST_STREAMS = 100;

/** Revisions that were read without a fault; revision 0 is always among what was looked at. */
export interface ReadRange {
  from: number;
  to: number;
}

/** The streams that this process found damaged, for an operator to see. */
export interface DamagedStreams {
  note(damage: StreamDamage): void;
  /** A stream was read whole, as far as that went: it leaves the list unless its flaw lies outside of what was read. */
  forget(stream: string, read: ReadRange): void;
  has(stream: string): boolean;
  /** In the order in which they were found. */
  list(): StreamDamage[];
}

/** `onFound` is called when a stream gets into the list, and not again while it stays there. */
export function createDamagedStreams(onFound: (damage: StreamDamage) => void): DamagedStreams {
  const streams = new Map<string, StreamDamage>();
  return {
    note(damage) {
      const { stream } = damage;
      if (!streams.has(stream)) {
        const [oldest] = streams.keys();
        if (streams.size >= MOST_STREAMS && oldest !== undefined) streams.delete(oldest);
        onFound(damage);
      }
      streams.set(stream, damage);
    },
    forget(stream, { from, to }) {
      const flaw = streams.get(stream)?.revision;
      if (flaw === undefined || flaw === 0 || (flaw >= from && flaw <= to)) streams.delete(stream);
    },
    has: (stream) => streams.has(stream),
    list: () => [...streams.values()],
  };
}
