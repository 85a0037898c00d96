import { bytesOf, type EventStore, type StoredEvent } from '../../../shared/ports/eventStore.ts';

/** Reads of the streams of a log that is an array. */
export const memoryReads = (log: readonly StoredEvent[]): Pick<EventStore, 'readStream'> => ({
  async readStream(stream, { direction, from, limit, maxBytes = Infinity }) {
    const step = direction === 'forwards' ? 1 : -1;
    const start = from ?? (direction === 'forwards' ? 0 : Infinity);
    const found = log
      .filter((event) => event.stream === stream && (event.revision - start) * step >= 0)
      .toSorted((a, b) => (a.revision - b.revision) * step)
      .slice(0, limit);
    let bytes = 0;
    const end = found.findIndex((event) => (bytes += bytesOf(event)) >= maxBytes);
    return end === -1 ? found : found.slice(0, end + 1);
  },
});
