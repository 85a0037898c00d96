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
import { countAppends, subscribeToAppends, type AppendNotifications } from './appendNotifier.ts';
import { isPosition, openReader, POSITION_FORM, type Reader } from './reader.ts';

/**
 * Throws `position_invalid` for a text that is not a position, or for a position beyond the end of
 * the log.
 */
function requireWithin(reader: Reader, after: Position): void {
  const end = reader.head();
  if (!isPosition(after)) throw invalidPositionError(after, POSITION_FORM, end);
  if (end === undefined || after > end) throw positionBeyondEndError(after, end);
}

/**
 * Opens the read side of the event log in `<folder>/events.db`, in any thread or process. It needs
 * no running writer, only an existing log. Throws a `store_unavailable` that is not retriable if
 * there is no readable log of this version.
 */
export function openSqliteEventLog(
  { folder }: { folder: string },
  reader: Reader = openReader(eventLogFile(folder)),
): EventLog {
  const file = eventLogFile(folder);
  /** Created by the first wait. */
  let notifications: AppendNotifications | undefined;

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
    const tracker = createCheckpointTracker(reads, after);
    if (typeof after === 'string') requireWithin(reader, after);
    await tracker.verify();
    let position = tracker.resumesAfter();
    let caughtUp = false;
    while (!signal.aborted) {
      const count = countAppends();
      const events = reader.readAfter(position, batchSize);
      if (events.length === 0 && caughtUp) {
        notifications ??= subscribeToAppends();
        await notifications.wait(count, signal);
        continue;
      }
      position = events.at(-1)?.position ?? position;
      caughtUp = (reader.head() ?? '') <= (position ?? '');
      yield { events, position, checkpoint: await tracker.advance(events), caughtUp };
      // Reads are synchronous. Without yielding to the event loop, a long catch-up would block
      // everything, including its own abort.
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
      notifications?.close();
    },
  };
}
