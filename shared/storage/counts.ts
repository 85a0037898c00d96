import { LIMITS } from '../limits.ts';
import type { Position } from '../ports/eventStore.ts';
import type { StorageRow } from '../readModels/tables.ts';

/** Events, their bytes, and recorded reads, which the others do not include. */
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

/** Appends of one day, up to a position. */
interface Group {
  day: string;
  upTo: Position;
  counts: Counts;
}

const later = (one: Position, other: Position): Position => (one > other ? one : other);

/** Appends of one account that the read models may not count yet. */
export interface PendingCounts {
  /** Counts an append until it has failed, or the read models count it. */
  begin: (day: string, counts: Counts) => { appended: (at: Position) => void; failed: () => void };
  /** Appends that end from now on form a new group, because the read models are being read. */
  seal: () => void;
  /** Forgets groups that the read models count, because they have reached the position. */
  drop: (reached: Position) => void;
  all: () => Counts;
  on: (day: string) => Counts;
}

/**
 * Appends in flight are one sum, and others are grouped, so that memory does not grow with the
 * number of appends. A group counts until the read models have reached its last append, so counts
 * may be too high by a group, and are never too low.
 */
export function pendingCounts(): PendingCounts {
  let groups: Group[] = [];
  let inFlight = noCounts();
  let sealed = true;

  const sum = (some: readonly Group[]): Counts =>
    some.reduce((total, { counts }) => addCounts(total, counts), inFlight);

  function add({ day, upTo, counts }: Group): void {
    const last = groups.at(-1);
    const full = groups.length >= LIMITS.storage.pendingGroups;
    if (last?.day === day && (!sealed || full)) {
      last.upTo = later(last.upTo, upTo);
      last.counts = addCounts(last.counts, counts);
      return;
    }
    sealed = false;
    groups.push({ day, upTo, counts });
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
    seal: () => void (sealed = true),
    drop: (reached) => void (groups = groups.filter(({ upTo }) => upTo > reached)),
    all: () => sum(groups),
    on: (day) => sum(groups.filter((group) => group.day === day)),
  };
}
