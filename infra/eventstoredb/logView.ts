import type { StoreLogger } from './logger.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import { collect, type Collected, type CollectOptions } from './collect.ts';
import type { Connection } from './connection.ts';
import { endOfLog } from './endOfLog.ts';
import { positionInvalid } from './positions.ts';
import { readFromRequest } from './readRequests.ts';
import { isInvalidPosition, isUnexplained } from './serverErrors.ts';
import { canBeOurs, toStoredEvent } from './storedEvent.ts';
import { within } from './within.ts';

/** What a subscription asks of the log itself, to check what it is told. */
export interface LogView {
  /** Errors: `position_invalid` when the position lies beyond the end of the log. */
  requireWithin(position: Position): Promise<void>;
  /** False for a checkpoint that is no position in the log. The first one is logged. */
  holds(checkpoint: Position | undefined): Promise<boolean>;
  /**
   * How far the log has no event of ours after the position: its end, where the last records are
   * others'. Rejects when an event of ours is there that the subscription has had the time to
   * deliver and did not.
   */
  considered(position: Position | undefined): Promise<Position | undefined>;
  /** True when no record lies beyond the position, whosever. */
  isEnd(position: Position | undefined): Promise<boolean>;
  /**
   * `position_invalid` where `error` means that no record begins at the position; else the error
   * itself.
   */
  explain(position: Position, error: unknown): Promise<unknown>;
}

interface Looking {
  connection: Connection;
  /** How long one look may take, in milliseconds. */
  limitMs: number;
  requiresLeader: boolean;
  signal: AbortSignal;
  logger: StoreLogger | undefined;
}

/** Two, because the first one may be the event at the position itself. */
const PAGE = 2;

export function createLogView({
  connection: { client, heard },
  limitMs,
  requiresLeader,
  signal,
  logger,
}: Looking): LogView {
  let end: Position | undefined;
  let warned = false;
  let missed: string | undefined;

  const inTime = <Result>(call: (asked: CollectOptions) => Promise<Result>): Promise<Result> =>
    within(limitMs, signal, (limit) => call({ requiresLeader, signal: limit, heard }));

  const readFrom = (position: Position | undefined, limit: number): Promise<Collected> =>
    inTime((asked) => collect(client, readFromRequest(position, limit), asked));

  async function lookAtEnd(): Promise<Position | undefined> {
    end = await inTime((asked) => endOfLog(client, asked));
    return end;
  }

  const liesWithin = async (place: Position): Promise<boolean> =>
    place <= (end ?? '') || place <= ((await lookAtEnd()) ?? '');

  return {
    async requireWithin(position) {
      if (await liesWithin(position)) return;
      const where = end ?? 'its beginning';
      throw positionInvalid(position, `it lies beyond the log's end, which is at ${where}`);
    },

    async holds(checkpoint) {
      if (checkpoint !== undefined && (await liesWithin(checkpoint))) return true;
      if (!warned)
        logger?.warn(
          { checkpoint },
          'the event store sent a checkpoint that is no place in its log (as EventStoreDB 24.2.0 to 24.10.4 do); it is ignored',
        );
      warned = true;
      return false;
    },

    isEnd: async (position) => ((await lookAtEnd()) ?? '') <= (position ?? ''),

    async considered(position) {
      const until = await lookAtEnd();
      if (until === undefined || until <= (position ?? '')) return position;
      const page = (await readFrom(position, PAGE)).events;
      const next = page.find(
        (event) => canBeOurs(event) && toStoredEvent(event).position > (position ?? ''),
      );
      if (!next) {
        // What others wrote into our streams is left out; more may lie behind a page that is full
        // of it.
        const last = page.at(-1);
        return page.length < PAGE || !last ? until : toStoredEvent(last).position;
      }
      const { id, position: place } = toStoredEvent(next);
      if (missed === id) throw new Error(`the subscription does not deliver the event at ${place}`);
      missed = id;
      return position;
    },

    async explain(position, error) {
      if (isInvalidPosition(error))
        return positionInvalid(position, 'no record begins there', error);
      if (!isUnexplained(error)) return error;
      const reason: unknown = await readFrom(position, 1).then(
        () => error,
        (refusal: unknown) => refusal,
      );
      return isInvalidPosition(reason)
        ? positionInvalid(position, 'no record begins there', reason)
        : error;
    },
  };
}
