import { setImmediate } from 'node:timers/promises';
import { createCheckpointTracker } from '../../../shared/eventlog/identity/logIdentity.ts';
import {
  positionBeyondEndError,
  invalidPositionError,
} from '../../../shared/eventlog/identity/positions.ts';
import type {
  EventBatch,
  EventLog,
  Position,
  ReadOptions,
  SubscribeOptions,
} from '../../../shared/ports/eventStore.ts';
import { eventLogFile } from './database.ts';
import { logReplacedError } from './errors.ts';
import { describeFileChange } from './fileIdentity.ts';
import { subscribeToAppends, type AppendNotifications } from './appendNotifier.ts';
import { isPosition, openReader, POSITION_FORM, type Reader } from './reader.ts';

/**
 * Errors: `position_invalid` for what is not a position, or lies where nothing was ever written.
 */
function requireWithin(reader: Reader, after: Position): void {
  const end = reader.head();
  if (!isPosition(after)) throw invalidPositionError(after, POSITION_FORM, end);
  if (end === undefined || after > end) throw positionBeyondEndError(after, end);
}

/**
 * The reading half of the event log in `<folder>/events.db`, for any thread or process; needs no
 * writer beside it, only that one has created the log. Errors: `store_unavailable`, not retriable,
 * when there is no readable log of this version.
 */
export function openSqliteEventLog(
  { folder }: { folder: string },
  reader: Reader = openReader(eventLogFile(folder)),
): EventLog {
  const file = eventLogFile(folder);
  /** From the first subscription on: a thread that only asks is not woken by every append. */
  let news: AppendNotifications | undefined;

  const reads = {
    readStream: async (stream: string, options: ReadOptions) => reader.readStream(stream, options),
    head: async () => reader.head(),
    firstEvent: async () => reader.readAfter(undefined, 1)[0],
    eventAt: async (position: Position) =>
      isPosition(position) ? reader.eventAt(position) : undefined,
  };

  async function* subscribe({
    after,
    batchSize,
    signal,
  }: SubscribeOptions): AsyncGenerator<EventBatch> {
    if (signal.aborted) return;
    const trail = createCheckpointTracker(reads, after);
    if (typeof after === 'string') requireWithin(reader, after);
    await trail.verify();
    let position = trail.resumesAfter();
    let caughtUp = false;
    while (!signal.aborted) {
      const events = reader.readAfter(position, batchSize);
      news ??= subscribeToAppends(file);
      if (events.length === 0 && caughtUp) {
        await news.wait(signal);
        continue;
      }
      position = events.at(-1)?.position ?? position;
      caughtUp = (reader.head() ?? '') <= (position ?? '');
      yield { events, position, checkpoint: await trail.advance(events), caughtUp };
      // Reads are synchronous: without a turn of the event loop a long catch-up would hold up
      // everything, its abort too.
      await setImmediate();
    }
  }

  return {
    ...reads,
    subscribe,
    trouble() {
      const change = describeFileChange(reader.files);
      if (change !== undefined) return logReplacedError(change).message;
      try {
        reader.head();
        return undefined;
      } catch (error) {
        return `The event log ${file} can't be read: ${error instanceof Error ? error.message : String(error)}`;
      }
    },
    async close() {
      reader.close();
      news?.close();
    },
  };
}
