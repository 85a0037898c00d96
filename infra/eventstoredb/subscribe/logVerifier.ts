import { withDeadline } from '../../../shared/lib/time/withDeadline.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { NodeConnection } from '../connection/connectionManager.ts';
import { isInvalidPosition, isUnknownError } from '../connection/serverErrors.ts';
import type { StoreLogger } from '../connection/troubleLog.ts';
import { positionInvalidError } from '../read/positions.ts';
import {
  buildTurnlogEventsRequest,
  isTurnlogEvent,
  readAll,
  readEndOfLog,
  toStoredEvent,
  type ReadCallOptions,
  type ReadAllResult,
} from '../read/readAll.ts';

/** Compares what a subscription receives with the log. */
export interface LogVerifier {
  /** Throws `position_invalid` when the position lies beyond the end of the log. */
  requireWithinLog(position: Position): Promise<void>;
  /** Whether the checkpoint is a position in the log. Logs the first that is not. */
  isValidCheckpoint(checkpoint: Position | undefined): Promise<boolean>;
  /**
   * The position up to which no event for the subscription follows: the end of the log, if the last
   * records belong to other applications. Throws when the subscription still misses an event that
   * the previous call found.
   */
  advanceWhileIdle(position: Position | undefined): Promise<Position | undefined>;
  /** Whether no record, in any stream, follows the position. */
  isEndOfLog(position: Position | undefined): Promise<boolean>;
  /** Whether the log ends before the position. False if a follower may answer, which may lag. */
  endsBefore(position: Position): Promise<boolean>;
  /** Returns `position_invalid` if `error` means that no record begins at the position, else `error`. */
  explainError(position: Position, error: unknown): Promise<unknown>;
}

interface VerifierOptions {
  connection: NodeConnection;
  /** The time limit of one read, in milliseconds. */
  limitMs: number;
  requiresLeader: boolean;
  signal: AbortSignal;
  logger: StoreLogger | undefined;
}

/** Two events, because the first one may be the event at the position itself. */
const PAGE_SIZE = 2;

export function createLogVerifier({
  connection: { client, recordActivity: onActivity },
  limitMs,
  requiresLeader,
  signal: callerSignal,
  logger,
}: VerifierOptions): LogVerifier {
  let lastKnownEnd: Position | undefined;
  let hasWarned = false;
  let missingEventId: string | undefined;

  const callWithLimit = <Result>(
    call: (options: ReadCallOptions) => Promise<Result>,
  ): Promise<Result> =>
    withDeadline(limitMs, callerSignal, (signal) => call({ requiresLeader, signal, onActivity }));

  const readFrom = (position: Position | undefined, limit: number): Promise<ReadAllResult> =>
    callWithLimit((options) =>
      readAll(client, buildTurnlogEventsRequest(position, limit), options),
    );

  async function readEnd(): Promise<Position | undefined> {
    lastKnownEnd = await callWithLimit((options) => readEndOfLog(client, options));
    return lastKnownEnd;
  }

  const isWithinLog = async (position: Position): Promise<boolean> =>
    position <= (lastKnownEnd ?? '') || position <= ((await readEnd()) ?? '');

  return {
    async requireWithinLog(position) {
      if (await isWithinLog(position)) return;
      const end = lastKnownEnd ?? 'its beginning';
      throw positionInvalidError(position, `it lies beyond the log's end, which is at ${end}`);
    },

    async isValidCheckpoint(checkpoint) {
      if (checkpoint !== undefined && (await isWithinLog(checkpoint))) return true;
      if (!hasWarned)
        logger?.warn(
          { checkpoint },
          'the event store sent a checkpoint that is not a position in its log (as EventStoreDB 24.2.0 to 24.10.4 do); it is ignored',
        );
      hasWarned = true;
      return false;
    },

    isEndOfLog: async (position) => ((await readEnd()) ?? '') <= (position ?? ''),

    endsBefore: async (position) => requiresLeader && ((await readEnd()) ?? '') < position,

    async advanceWhileIdle(position) {
      const end = await readEnd();
      if (end === undefined || end <= (position ?? '')) return position;
      const page = (await readFrom(position, PAGE_SIZE)).events;
      const nextEvent = page.find(
        (event) => isTurnlogEvent(event) && toStoredEvent(event).position > (position ?? ''),
      );
      if (!nextEvent) {
        // The page contains only events of other applications in our streams. More may follow a
        // full page.
        const lastEvent = page.at(-1);
        return page.length < PAGE_SIZE || !lastEvent ? end : toStoredEvent(lastEvent).position;
      }
      const { id, position: eventPosition } = toStoredEvent(nextEvent);
      if (missingEventId === id)
        throw new Error(`the subscription does not deliver the event at ${eventPosition}`);
      missingEventId = id;
      return position;
    },

    async explainError(position, error) {
      if (isInvalidPosition(error))
        return positionInvalidError(position, 'no record begins there', error);
      if (!isUnknownError(error)) return error;
      const readError: unknown = await readFrom(position, 1).then(
        () => error,
        (thrown: unknown) => thrown,
      );
      return isInvalidPosition(readError)
        ? positionInvalidError(position, 'no record begins there', readError)
        : error;
    },
  };
}
