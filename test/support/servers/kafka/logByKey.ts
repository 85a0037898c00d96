import type { EventStore } from '../../../../shared/ports/eventStore.ts';
import type { Received } from './kafkaConsumer.ts';

/**
 * Every published event of each key: `<revision> <id>`, in the order of arrival, a message that
 * came twice (the same offset) once.
 */
export function byKey(received: readonly Received[]): Map<string, string[]> {
  const offsets = new Set<string>();
  const keys = new Map<string, string[]>();
  for (const { topic, partition, offset, key, headers } of received) {
    const place = `${topic} ${partition} ${offset}`;
    if (offsets.has(place)) continue;
    offsets.add(place);
    keys.set(key, [
      ...(keys.get(key) ?? []),
      `${headers['ce_streamrevision']} ${headers['ce_id']}`,
    ]);
  }
  return keys;
}

/** The same of the log. */
export async function logByKey(store: EventStore): Promise<Map<string, string[]>> {
  const keys = new Map<string, string[]>();
  const reading = new AbortController();
  for await (const { events, caughtUp } of store.subscribe({
    batchSize: 5_000,
    signal: reading.signal,
  })) {
    for (const { stream, revision, id } of events) {
      const key = stream.slice(stream.indexOf('-') + 1);
      keys.set(key, [...(keys.get(key) ?? []), `${revision} ${id}`]);
    }
    if (caughtUp) reading.abort();
  }
  return keys;
}
