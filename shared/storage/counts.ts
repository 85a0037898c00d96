import { LIMITS } from '../limits.ts';
import type { Position } from '../ports/eventStore.ts';
import type { StorageRow } from '../readModels/tables.ts';

/** Events, their bytes, and events of the audit, which the others do not include. */
export type Counts = Pick<StorageRow, 'events' | 'bytes' | 'audits'>;

export const noCounts = (): Counts => ({ events: 0, bytes: 0, audits: 0 });

export const addCounts = (one: Counts, other: Counts): Counts => ({
  events: one.events + other.events,
  bytes: one.bytes + other.bytes,
  audits: one.audits + other.audits,
});

const minus = ({ events, bytes, audits }: Counts): Counts => ({
  events: -events,
  bytes: -bytes,
  audits: -audits,
});

/** An append, or several of one day, up to a position. */
interface Pending {
  day: string;
  upTo: Position;
  counts: Counts;
}

const later = (one: Position, other: Position): Position => (one > other ? one : other);

/** Appends of one account that the read models may not count yet. */
export interface PendingCounts {
  /** Counts an append until it has failed, or the read models count it. */
  begin: (day: string, counts: Counts) => { appended: (at: Position) => void; failed: () => void };
  /** Forgets appends that the read models count, because they have reached the position. */
  drop: (reached: Position) => void;
  all: () => Counts;
  on: (day: string) => Counts;
}

/**
 * Appends in flight are one sum. Others are merged when there are many, so that memory stays
 * bounded while the read models are late; merged appends count until the last of them is shown, so
 * counts may then be too high, and are never too low.
 */
export function pendingCounts(): PendingCounts {
  let pending: Pending[] = [];
  let inFlight = noCounts();
  let total = noCounts();
  const days = new Map<string, Counts>();

  function sum({ day, counts }: Pending): void {
    total = addCounts(total, counts);
    days.set(day, addCounts(days.get(day) ?? noCounts(), counts));
  }

  function add(append: Pending): void {
    sum(append);
    const last = pending.at(-1);
    if (!last || pending.length < LIMITS.storage.pendingAppends || last.day !== append.day) {
      pending.push(append);
      return;
    }
    last.upTo = later(last.upTo, append.upTo);
    last.counts = addCounts(last.counts, append.counts);
  }

  return {
    begin(day, counts) {
      inFlight = addCounts(inFlight, counts);
      const end = (): void => void (inFlight = addCounts(inFlight, minus(counts)));
      return {
        appended(upTo) {
          end();
          add({ day, upTo, counts });
        },
        failed: end,
      };
    },
    drop(reached) {
      pending = pending.filter(({ upTo }) => upTo > reached);
      total = noCounts();
      days.clear();
      pending.forEach(sum);
    },
    all: () => addCounts(inFlight, total),
    on: (day) => addCounts(inFlight, days.get(day) ?? noCounts()),
  };
}
