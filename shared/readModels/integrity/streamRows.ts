import type { ReadableEvent } from '../../eventlog/encryption/openTexts.ts';
import { textsForRows, type ProtectedStore } from '../../eventlog/encryption/protectedStore.ts';
import { isFull } from '../../eventlog/reading/wholeStream.ts';
import {
  NO_ACCOUNT,
  SLICE_BYTES,
  yieldToEventLoop,
} from '../../lib/concurrency/yieldToEventLoop.ts';
import { bytesOf, type Position } from '../../ports/eventStore.ts';
import { fold, rowMaps, type RowMaps } from '../../projections/fold.ts';
import { planBatch } from '../../projections/plan.ts';

const PAGE_EVENTS = 500;
/** The rows that the events of one stream make, in memory. */
export interface StreamRows {
  rows: RowMaps;
  /** The revision of the last event; -1 before the first one. */
  revision: number;
  position: Position | undefined;
  /** True once an event could not be applied: the projector has parked the stream there. */
  parked: boolean;
  /** True if the read has stopped at its size limit. */
  isCut: boolean;
}

export const noRows = (): StreamRows => ({
  rows: rowMaps(),
  revision: -1,
  position: undefined,
  parked: false,
  isCut: false,
});

/**
 * Applies the next events of the stream with the projector's own functions. Stops before a gap in the
 * revisions.
 */
export function applyToRows(state: StreamRows, events: readonly ReadableEvent[]): void {
  const gap = events.findIndex(({ revision }, index) => revision !== state.revision + 1 + index);
  const next = gap === -1 ? events : events.slice(0, gap);
  const last = next.at(-1);
  if (!last) return;
  const { stream, revision, position } = last;
  const parkedBefore = new Set(state.parked ? [stream] : []);
  const { parked, erased } = fold(planBatch(next), state.rows, parkedBefore);
  state.parked = (state.parked && erased.length === 0) || parked.length > 0;
  state.revision = revision;
  state.position = position;
}

/**
 * Removes rows that no later event changes, except the one with this id: those of a long stream would
 * fill the memory.
 */
export function dropFinalRows({ rows }: StreamRows, except: string): void {
  for (const [id, { status }] of rows.turns)
    if (id !== except && status !== 'running') rows.turns.delete(id);
  for (const id of rows.replay_turns.keys()) if (id !== except) rows.replay_turns.delete(id);
}

/** How far to read a stream. */
interface StreamPart {
  /** The last revision; the end of the stream by default. */
  upTo?: number;
  /** The end of an earlier read; changed by this one. */
  state?: StreamRows;
  /** Stops after the page that reaches this size; unlimited by default. */
  maxBytes?: number;
}

/**
 * Reads a stream and makes its rows in memory, as the projector does. Throws `store_unavailable`, and
 * `stream_damaged` when the store says so.
 */
export async function readStreamRows(
  { readStream, keys }: Pick<ProtectedStore, 'readStream' | 'keys'>,
  stream: string,
  { upTo = Infinity, state = noRows(), maxBytes = Infinity }: StreamPart = {},
): Promise<StreamRows> {
  const open = textsForRows({ readStream }, keys);
  let bytes = 0;
  state.isCut = false;
  while (state.revision < upTo && bytes < maxBytes) {
    // Reads of an embedded log don't wait: a long stream would keep the event loop busy.
    if (bytes > 0) await yieldToEventLoop(NO_ACCOUNT);
    const from = state.revision + 1;
    const limit = Math.min(PAGE_EVENTS, upTo - state.revision);
    const page = { direction: 'forwards', limit, maxBytes: SLICE_BYTES } as const;
    const events = await readStream(stream, { ...page, from });
    for (const event of events) bytes += bytesOf(event);
    applyToRows(state, await open(events));
    if (state.revision < from || !isFull({ ...page, events })) return state;
  }
  state.isCut = state.revision < upTo;
  return state;
}
