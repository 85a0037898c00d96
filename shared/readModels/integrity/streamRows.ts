import type { ReadableEvent } from '../../eventlog/encryption/openTexts.ts';
import { fold, rowMaps, type RowMaps } from '../../projections/fold.ts';
import { planBatch } from '../../projections/plan.ts';

/** The rows that the events of one stream make, in memory. */
export interface StreamRows {
  rows: RowMaps;
  /** The revision of the last event; -1 before the first one. */
  revision: number;
  /** True once an event could not be applied: the projector has parked the stream there. */
  parked: boolean;
}

export const noRows = (): StreamRows => ({ rows: rowMaps(), revision: -1, parked: false });

/**
 * Applies the next events of the stream with the projector's own functions. Stops before a gap in the
 * revisions.
 */
export function applyToRows(state: StreamRows, events: readonly ReadableEvent[]): void {
  const gap = events.findIndex(({ revision }, index) => revision !== state.revision + 1 + index);
  const next = gap === -1 ? events : events.slice(0, gap);
  const last = next.at(-1);
  if (!last) return;
  const { stream } = last;
  const parkedBefore = new Set(state.parked ? [stream] : []);
  const { parked, erased } = fold(planBatch(next), state.rows, parkedBefore);
  state.parked = (state.parked && erased.length === 0) || parked.length > 0;
  state.revision = last.revision;
}
