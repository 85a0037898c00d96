import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { storeDamageError } from '../../../shared/eventlog/reading/streamDamage.ts';
import type { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { MIB } from '../../../shared/lib/units.ts';
import { withDeadline } from '../../../shared/lib/time/withDeadline.ts';
import type {
  EventStore,
  Position,
  ReadOptions,
  StoredEvent,
} from '../../../shared/ports/eventStore.ts';
import type { RecentEventIds } from '../append/recentEventIds.ts';
import type { CallAttempt, CallWithRetry } from '../connection/callRetry.ts';
import type { ConnectionManager } from '../connection/connectionManager.ts';
import { isInvalidPosition, isStreamTombstoned } from '../connection/serverErrors.ts';
import { isValidPosition } from './positions.ts';
import {
  buildRecordAtRequest,
  buildStreamRequest,
  buildTurnlogEventsRequest,
  isTurnlogEvent,
  readAll,
  readEndOfLog,
  toStoredEvent,
  type ReadAllResult,
} from './readAll.ts';
import type { ServerEvent } from './readResponse.ts';

/**
 * The share of the deadline after which the first attempt of a read is repeated: a call may be
 * silent although its node is alive.
 */
const FIRST_ATTEMPT_SHARE = 0.4;

interface Dependencies {
  deadlineMs: number;
  connections: ConnectionManager;
  callWithRetry: CallWithRetry;
  recentEventIds: RecentEventIds;
}

/**
 * How many events to read to find the first one: other applications may have written to our streams
 * earlier.
 */
const FIRST_EVENT_PAGE = 100;
/** Less than an answer may take (readAll.ts). */
const FIRST_EVENT_BYTES = 32 * MIB;

export const streamHiddenError = (stream: string): TurnlogError =>
  storeDamageError(stream, 'all of its events were deleted or are hidden in the event store');

/** Whether `$tb` in a stream's metadata truncates the stream. */
function isTruncated(metadata: ServerEvent): boolean {
  try {
    const { $tb } = JSON.parse(metadata.data) as {
      $tb?: unknown;
    };
    return typeof $tb === 'number' && $tb > 0;
  } catch {
    return false;
  }
}

/** Whether the read starts at an end of the stream, where an existing stream has an event. */
const startsAtAnEnd = ({ direction, from }: ReadOptions): boolean =>
  direction === 'backwards' ? from === undefined : (from ?? 0) === 0;

/** Creates the port's reads of one stream, and of the log's events and end. */
export function createEventStoreReader({
  deadlineMs,
  connections,
  callWithRetry,
  recentEventIds,
}: Dependencies): Pick<EventStore, 'readStream' | 'head' | 'firstEvent' | 'eventAt'> {
  const { requiresLeader } = connections;

  const limitFirstAttempt = <Result>(
    { isFirst, signal }: CallAttempt,
    call: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> =>
    isFirst ? withDeadline(deadlineMs * FIRST_ATTEMPT_SHARE, signal, call) : call(signal);

  const readPage = (
    stream: string,
    options: ReadOptions,
    description = `read ${stream} ($r)`,
  ): Promise<ReadAllResult> =>
    callWithRetry({ kind: 'read', description }, async (attempt) => {
      const { client, recordActivity: onActivity } = attempt.connection;
      const { maxBytes } = options;
      try {
        return await limitFirstAttempt(attempt, (signal) =>
          readAll(client, buildStreamRequest(stream, options), {
            requiresLeader,
            maxBytes,
            signal,
            onActivity,
          }),
        );
      } catch (error) {
        if (!isStreamTombstoned(error)) throw error;
        throw storeDamageError(stream, 'it was tombstoned in the event store');
      }
    });

  /**
   * Throws when a read found nothing because another application deleted the stream or hid all of
   * it.
   */
  async function requireNotHidden(
    stream: string,
    options: ReadOptions,
    { streamNotFound }: ReadAllResult,
  ): Promise<void> {
    if (!streamNotFound && startsAtAnEnd(options)) throw streamHiddenError(stream);
    if (!streamNotFound) return;
    const right = `read the metadata of ${stream} ($mr)`;
    const { events } = await readPage(`$$${stream}`, { direction: 'backwards', limit: 1 }, right);
    if (events[0] && isTruncated(events[0])) throw streamHiddenError(stream);
  }

  async function readStream(stream: string, options: ReadOptions): Promise<StoredEvent[]> {
    const page = await readPage(stream, options);
    if (page.events.length === 0) await requireNotHidden(stream, options, page);
    const events = page.events.map(toStoredEvent);
    recentEventIds.remember(events);
    return events;
  }

  const head = (): Promise<Position | undefined> =>
    callWithRetry({ kind: 'read', description: 'read $all ($r)' }, (attempt) => {
      const { client, recordActivity: onActivity } = attempt.connection;
      return limitFirstAttempt(attempt, (signal) =>
        readEndOfLog(client, { requiresLeader, signal, onActivity }),
      );
    });

  const readLog = (request: ReadReq, maxBytes?: number): Promise<StoredEvent[]> =>
    callWithRetry({ kind: 'read', description: 'read $all ($r)' }, async (attempt) => {
      const { client, recordActivity: onActivity } = attempt.connection;
      try {
        const { events } = await limitFirstAttempt(attempt, (signal) =>
          readAll(client, request, { requiresLeader, maxBytes, signal, onActivity }),
        );
        return events.filter(isTurnlogEvent).map(toStoredEvent);
      } catch (error) {
        if (isInvalidPosition(error)) return [];
        throw error;
      }
    });

  return {
    readStream,
    head,
    firstEvent: async () =>
      (await readLog(buildTurnlogEventsRequest(undefined, FIRST_EVENT_PAGE), FIRST_EVENT_BYTES))[0],
    eventAt: async (position) =>
      isValidPosition(position)
        ? (await readLog(buildRecordAtRequest(position))).find(
            (event) => event.position === position,
          )
        : undefined,
  };
}
