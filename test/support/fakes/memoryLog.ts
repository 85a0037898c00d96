import { recordedHash } from '../../../shared/eventlog/hashChain.ts';
import { randomUUID } from 'node:crypto';
import { chainEvents, NO_STREAM, type StreamHead } from '../../../shared/eventlog/append.ts';
import type {
  EventBatch,
  EventStore,
  Position,
  StoredEvent,
} from '../../../shared/ports/eventStore.ts';
import { leafEntry } from '../../../shared/transparency/tlog/leaf.ts';
import { openRightEdge } from '../../../shared/transparency/tlog/rightEdge.ts';
import { TILE_WIDTH } from '../../../shared/transparency/tlog/tiles.ts';
import type { TreeHead } from '../../../shared/transparency/tlog/verify.ts';
import { memoryReads } from './memoryReads.ts';
import { memoryTiles, type MemoryTiles } from './memoryTiles.ts';
import { AUTHORSHIP } from '../builders/authorship.ts';

/** The position of the event at an index. */
export const positionAt = (index: number): Position => String(index).padStart(8, '0') as Position;

/** Events in their order, at the positions of that order. */
export const placed = (events: readonly StoredEvent[]): StoredEvent[] =>
  events.map((event, index) => ({ ...event, position: positionAt(index) }));

/** Writes events to streams, each with the hash that fits. */
export function streamsWriter() {
  const heads = new Map<string, StreamHead>();
  return (stream: string, data: object, id: string = randomUUID()): StoredEvent => {
    const before = heads.get(stream) ?? NO_STREAM;
    const event = { id, type: 'test.happened.v1', data };
    const { encoded, head } = chainEvents(stream, before, [event], AUTHORSHIP);
    heads.set(stream, head);
    return { ...encoded[0]!, stream, revision: head.revision, position: positionAt(0) };
  };
}

/** A log of so many events of some streams, interleaved. */
export function logOf(events: number, streams = 7): StoredEvent[] {
  const write = streamsWriter();
  return placed(
    Array.from({ length: events }, (_, index) =>
      write(`test-${(index * index + index) % streams}`, { index, text: `event ${index}` }),
    ),
  );
}

const BATCH = 100;

/** An array as a store that is only read. */
export function memoryLog(
  log: readonly StoredEvent[],
): Pick<EventStore, 'readStream' | 'subscribe'> {
  const byStream = Map.groupBy(log, ({ stream }) => stream);
  return {
    readStream: (stream, options) =>
      memoryReads(byStream.get(stream) ?? []).readStream(stream, options),
    async *subscribe({ after }): AsyncGenerator<EventBatch> {
      const first = log.findIndex(
        ({ position }) => after === undefined || position > (after as Position),
      );
      for (let at = first < 0 ? log.length : first; ; at += BATCH) {
        const events = log.slice(at, at + BATCH);
        const caughtUp = at + BATCH >= log.length;
        yield { events, position: events.at(-1)?.position, checkpoint: undefined, caughtUp };
        if (caughtUp) return;
      }
    },
  };
}

/** The transparency log of a log, and a checkpoint of it at some sizes. */
export async function treeOfLog(
  log: readonly StoredEvent[],
  sizes: readonly number[] = [],
): Promise<{ tiles: MemoryTiles; heads: TreeHead[] }> {
  const tiles = memoryTiles();
  const edge = await openRightEdge(tiles, 0);
  const heads: TreeHead[] = [];
  for (const [index, event] of log.entries()) {
    const event_hash = recordedHash(event);
    edge.append(leafEntry(event_hash, index));
    const count = index + 1;
    if (count % TILE_WIDTH === 0 && count < log.length)
      tiles.bundles.set(count / TILE_WIDTH, {
        log_id: 'log',
        position: event.position,
        event_id: event.id,
        event_hash,
      });
    if (sizes.includes(index + 1)) heads.push({ size: index + 1, root: edge.root() });
  }
  tiles.write(edge.takeFiles());
  return { tiles, heads };
}
