import type { Clock } from '../../shared/ports/clock.ts';
import type { EventBatch, Position, StoredEvent } from '../../shared/ports/eventStore.ts';
import { decodeEvent } from '../../shared/eventlog/codec.ts';

const recordedAt = (event: StoredEvent): number => Date.parse(decodeEvent(event).metadata.recorded_at);

export interface Lag {
  /** Events that were read and are not published yet. */
  reading(batch: EventBatch): void;
  /** They are published now. */
  published(batch: EventBatch): void;
  /** Everything up to here is published. */
  position(): Position | undefined;
  resumed(position: Position | undefined): void;
  /**
   * The age of the oldest event that is not published, in milliseconds: 0 when the position is the head of the log. Where that event
   * has not been read yet, the time since everything was published.
   */
  milliseconds(head: Position | undefined): number;
}

/** How far publishing is behind the log. */
export function createLag(clock: Clock): Lag {
  let position: Position | undefined;
  let oldest: number | undefined;
  let upToDateAt = clock.now();
  return {
    reading({ events: [first] }) {
      oldest ??= first && recordedAt(first);
    },
    published(batch) {
      const last = batch.events.at(-1);
      position = batch.position;
      oldest = batch.caughtUp ? undefined : (last && recordedAt(last));
      if (batch.caughtUp) upToDateAt = clock.now();
    },
    position: () => position,
    resumed(at) {
      position = at;
    },
    milliseconds(head) {
      if (head === undefined || (position !== undefined && position >= head)) {
        upToDateAt = clock.now();
        return 0;
      }
      return Math.max(0, clock.now() - (oldest ?? upToDateAt));
    },
  };
}
