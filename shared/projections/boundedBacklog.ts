import { appendBytes } from '../eventlog/appendLimits.ts';
import { KIB } from '../lib/units.ts';
import type { EventStore } from '../ports/eventStore.ts';
import type { ProgressSource } from './progress.ts';

/** Appended bytes that may gather before they are applied. */
const GATHERED_BYTES = 256 * KIB;

/**
 * Wraps a store so that events are applied without delay once many bytes of them have gathered: a
 * reader that waits for the last of them would wait for all.
 */
export function withBoundedBacklog<Store extends Pick<EventStore, 'append'>>(
  store: Store,
  progress: Required<Pick<ProgressSource, 'subscribe' | 'request'>>,
): Store {
  let bytes = 0;
  progress.subscribe(() => {
    bytes = 0;
  });
  return {
    ...store,
    async append(...[stream, expected, events]: Parameters<EventStore['append']>) {
      const result = await store.append(stream, expected, events);
      bytes += appendBytes(events);
      if (bytes >= GATHERED_BYTES) progress.request();
      return result;
    },
  };
}
