import { appendBytes } from '../eventlog/appendLimits.ts';
import { KIB } from '../lib/units.ts';
import type { EventStore, Position } from '../ports/eventStore.ts';
import type { ProgressSource } from './progress.ts';

/** Bytes of large appends that may gather before they are applied. Each batch costs small ones too much. */
const GATHERED_BYTES = 256 * KIB;
const LARGE_BYTES = 8 * KIB;

/**
 * Wraps a store so that events are applied without delay once many bytes of them have gathered: a
 * reader that waits for the last of them would wait for all. Events of other processes do not count.
 */
export function withBoundedBacklog<Store extends Pick<EventStore, 'append'>>(
  store: Store,
  progress: Required<Pick<ProgressSource, 'subscribe' | 'request'>>,
): Store {
  let gatheredBytes = 0;
  let requested: Position | undefined;
  progress.subscribe(({ position }) => {
    // The batch may have been read before the events that it was requested for were appended.
    if (requested !== undefined && (position ?? '') < requested) progress.request();
    else requested = undefined;
  });
  return {
    ...store,
    async append(...[stream, expected, events]: Parameters<EventStore['append']>) {
      const result = await store.append(stream, expected, events);
      const bytes = appendBytes(events);
      if (bytes >= LARGE_BYTES) gatheredBytes += bytes;
      if (gatheredBytes < GATHERED_BYTES) return result;
      gatheredBytes = 0;
      requested = result.position;
      progress.request();
      return result;
    },
  };
}
