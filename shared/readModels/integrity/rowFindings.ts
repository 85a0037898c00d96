import { setTimeout as sleep } from 'node:timers/promises';
import type { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { Position } from '../../ports/eventStore.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import { readModelDamagedError, type DamagedRow, type DamagedRows } from './damagedRows.ts';

/** A node of a cluster may show an event later than the one that the projector reads, by some seconds. */
const PAUSES_MS = [100, 400, 1_000, 1_500, 2_000];
/** When a row is used, the log is read again this long after the last time. */
export const LOOK_AGAIN_MS = 2_000;
/** A row may be older than the log for this long, while the projector is at work. */
const OUTDATED_MS = 5_000;

type Place = Pick<DamagedRow, 'table' | 'key'>;

/** Judges rows that differ from the log, and records those that are damaged. */
export interface RowFindings {
  /** The row matches the log. */
  matches(place: Place): void;
  /** Records that the row differs in a column, and returns the error to throw. */
  differs(place: Place, column: string): TurnlogError;
  /**
   * Reads until the log shows the row's event, for some seconds at most; once only for a row that is
   * known to be damaged. `read` resolves with true then. Rejects with `read_model_damaged`.
   */
  untilSeen(place: Place, read: () => Promise<boolean>): Promise<void>;
  /**
   * Records a row that lacks an event which the read models have shown for some seconds: an earlier
   * row was put back. `learnedAt` is when this process read that event. Never rejects.
   */
  outdated(place: Place, position: Position, learnedAt: number): Promise<void>;
}

/** `now` returns milliseconds of a monotonic clock. */
export function createRowFindings(
  damaged: DamagedRows,
  { untilShown }: Pick<ReadModels, 'untilShown'>,
  now: () => number,
): RowFindings {
  function differs(place: Place, column: string): TurnlogError {
    damaged.record({ ...place, column });
    return readModelDamagedError(place.table);
  }

  return {
    differs,
    matches: (place) => damaged.clear(place),
    async untilSeen(place, read) {
      for (const pause of [0, ...(damaged.has(place) ? [] : PAUSES_MS)]) {
        if (pause > 0) await sleep(pause, undefined, { ref: false });
        if (await read()) return;
      }
      throw differs(place, 'revision');
    },
    async outdated(place, position, learnedAt) {
      if (now() - learnedAt < OUTDATED_MS) return;
      const isShown = await untilShown(position, 0).catch(() => false);
      if (isShown) differs(place, 'revision');
    },
  };
}
