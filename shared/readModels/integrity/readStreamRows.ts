import { textsForRows, type ProtectedStore } from '../../eventlog/encryption/protectedStore.ts';
import { LIMITS } from '../../limits.ts';
import { applyToRows, noRows, type StreamRows } from './streamRows.ts';

const PAGE_EVENTS = 500;

/** Which events of a stream to read. */
export interface StreamPart {
  /** The last revision; the end of the stream by default. */
  upTo?: number;
  /** The most events; unlimited by default. */
  maxEvents?: number;
}

/**
 * Reads a stream and makes its rows in memory, as the projector does. Undefined when the stream is
 * longer than `maxEvents`. Throws `store_unavailable`, and `stream_damaged` when the store says so.
 */
export async function readStreamRows(
  { readStream, keys }: Pick<ProtectedStore, 'readStream' | 'keys'>,
  stream: string,
  { upTo = Infinity, maxEvents = Infinity }: StreamPart = {},
): Promise<StreamRows | undefined> {
  if (upTo >= maxEvents && upTo !== Infinity) return undefined;
  const open = textsForRows({ readStream }, keys);
  const state = noRows();
  while (state.revision < upTo) {
    const events = await readStream(stream, {
      direction: 'forwards',
      from: state.revision + 1,
      limit: Math.min(PAGE_EVENTS, upTo - state.revision),
      maxBytes: LIMITS.store.pageBytes,
    });
    const before = state.revision;
    applyToRows(state, await open(events));
    if (state.revision === before) return state;
    if (state.revision >= maxEvents) return undefined;
  }
  return state;
}
