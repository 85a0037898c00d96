import { KIB } from '../lib/units.ts';
import type { EncodedEvent, EventStore, Position } from '../ports/eventStore.ts';
import type { ProgressSource } from './progress.ts';

/** Characters of large appends that may gather before they are applied. Small ones would pay for each batch. */
const GATHERED_CHARS = 256 * KIB;
const LARGE_CHARS = 8 * KIB;

/** About what the events take; counting their bytes takes longer. */
function charsOf(events: readonly EncodedEvent[]): number {
  let chars = 0;
  for (const { data, toClose } of events) {
    chars += data.length;
    for (const { text } of toClose?.texts ?? []) chars += text.length;
  }
  return chars;
}

/**
 * Wraps a store so that events are applied without delay once much text of them has gathered: a reader
 * that waits for the last of them would wait for all. Events of other processes do not count.
 */
export function withBoundedBacklog<Store extends Pick<EventStore, 'append'>>(
  store: Store,
  progress: Required<Pick<ProgressSource, 'subscribe' | 'request'>>,
): Store {
  let gathered = 0;
  /** The last append that is counted. */
  let counted: Position | undefined;
  let requested: Position | undefined;
  progress.subscribe(({ position = '' }) => {
    if (counted !== undefined && position >= counted) gathered = 0;
    // The batch may have been read before the events that it was requested for were appended.
    if (requested !== undefined && position < requested) progress.request();
    else requested = undefined;
  });
  return {
    ...store,
    async append(...[stream, expected, events]: Parameters<EventStore['append']>) {
      const result = await store.append(stream, expected, events);
      const chars = charsOf(events);
      if (chars < LARGE_CHARS) return result;
      counted = result.position;
      gathered += chars;
      if (gathered < GATHERED_CHARS) return result;
      gathered = 0;
      requested = counted;
      progress.request();
      return result;
    },
  };
}
