import type { ProtectedStore } from '../../../shared/eventlog/encryption/protectedStore.ts';

/**
 * A store whose reads are served by a node that shows a stream only up to a revision, for so many
 * milliseconds.
 */
export function lagging(store: ProtectedStore, lastShown: number, forMs: number): ProtectedStore {
  const until = performance.now() + forMs;
  return {
    ...store,
    async readStream(stream, options) {
      if (performance.now() >= until) return store.readStream(stream, options);
      const { direction, limit, from = direction === 'forwards' ? 0 : lastShown } = options;
      if (direction === 'backwards') {
        const first = Math.min(from, lastShown);
        return first < 0 ? [] : store.readStream(stream, { direction, from: first, limit });
      }
      const events = await store.readStream(stream, { direction, from, limit });
      return events.filter(({ revision }) => revision <= lastShown);
    },
  };
}
