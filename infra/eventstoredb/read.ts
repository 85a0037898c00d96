import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import type {
  EventStore,
  Position,
  ReadOptions,
  StoredEvent,
} from '../../shared/ports/eventStore.ts';
import { collect, type Collected } from './collect.ts';
import type { Connections } from './connection.ts';
import { endOfLog } from './endOfLog.ts';
import type { KnownEvents } from './knownEvents.ts';
import { isPosition } from './positions.ts';
import { readFromRequest, readStreamRequest, recordAtRequest } from './readRequests.ts';
import type { Attempt, Retrying } from './retry.ts';
import { isInvalidPosition, isStreamDeleted } from './serverErrors.ts';
import { canBeOurs, toStoredEvent } from './storedEvent.ts';
import { streamEnded, streamHidden, truncationOf } from './streamLoss.ts';
import { within } from './within.ts';

/**
 * The part of the deadline after which a read is begun anew, once: its call may have fallen silent,
 * though the node lives.
 */
const FIRST_TRY = 0.4;

interface Dependencies {
  deadlineMs: number;
  connections: Connections;
  retrying: Retrying;
  known: KnownEvents;
}

/** What others wrote into streams of ours may come before our first event; so much is looked at. */
const FIRST_PAGE = 100;

/** True when a read of a stream that is there must find something. */
const beginsAtAnEnd = ({ direction, from }: ReadOptions): boolean =>
  direction === 'backwards' ? from === undefined : (from ?? 0) === 0;

/** Reads of one stream, and of the log's events and end. */
export function createReads({
  deadlineMs,
  connections,
  retrying,
  known,
}: Dependencies): Pick<EventStore, 'readStream' | 'head' | 'firstEvent' | 'eventAt'> {
  const { requiresLeader } = connections;

  const inTime = <Result>(
    { first, signal }: Attempt,
    call: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> => (first ? within(deadlineMs * FIRST_TRY, signal, call) : call(signal));

  const page = (
    stream: string,
    options: ReadOptions,
    right = `read ${stream} ($r)`,
  ): Promise<Collected> =>
    retrying({ kind: 'read', name: right }, async (attempt) => {
      const { client, heard } = attempt.connection;
      try {
        return await inTime(attempt, (signal) =>
          collect(client, readStreamRequest(stream, options), {
            requiresLeader,
            maxBytes: options.maxBytes,
            signal,
            heard,
          }),
        );
      } catch (error) {
        throw isStreamDeleted(error) ? streamEnded(stream) : error;
      }
    });

  /**
   * Nothing was found. Throws where that can't be: others have deleted the stream, or hidden all of
   * it.
   */
  async function requireAbsent(
    stream: string,
    options: ReadOptions,
    { notFound }: Collected,
  ): Promise<void> {
    if (!notFound && beginsAtAnEnd(options)) throw streamHidden(stream);
    if (!notFound) return;
    const right = `read the metadata of ${stream} ($mr)`;
    const { events } = await page(`$$${stream}`, { direction: 'backwards', limit: 1 }, right);
    if (events[0] && truncationOf(events[0]) !== undefined) throw streamHidden(stream);
  }

  async function readStream(stream: string, options: ReadOptions): Promise<StoredEvent[]> {
    const found = await page(stream, options);
    if (found.events.length === 0) await requireAbsent(stream, options, found);
    const events = found.events.map(toStoredEvent);
    known.note(events);
    return events;
  }

  const head = (): Promise<Position | undefined> =>
    retrying({ kind: 'read', name: 'read $all ($r)' }, (attempt) => {
      const { client, heard } = attempt.connection;
      return inTime(attempt, (signal) => endOfLog(client, { requiresLeader, signal, heard }));
    });

  /** Records of the whole log. */
  const readLog = (request: ReadReq): Promise<StoredEvent[]> =>
    retrying({ kind: 'read', name: 'read $all ($r)' }, async (attempt) => {
      const { client, heard } = attempt.connection;
      try {
        const { events } = await inTime(attempt, (signal) =>
          collect(client, request, { requiresLeader, signal, heard }),
        );
        return events.filter(canBeOurs).map(toStoredEvent);
      } catch (error) {
        if (isInvalidPosition(error)) return [];
        throw error;
      }
    });

  return {
    readStream,
    head,
    firstEvent: async () => (await readLog(readFromRequest(undefined, FIRST_PAGE)))[0],
    eventAt: async (position) =>
      isPosition(position)
        ? (await readLog(recordAtRequest(position))).find((event) => event.position === position)
        : undefined,
  };
}
