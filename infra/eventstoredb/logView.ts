import type { StoreLogger } from './logger.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import { collect } from './collect.ts';
import type { Connection } from './connections.ts';
import { endOfLog } from './endOfLog.ts';
import { positionInvalid } from './positions.ts';
import { readFromRequest } from './readRequests.ts';
import { isInvalidPosition, isUnexplained } from './serverErrors.ts';
import { toStoredEvent } from './storedEvent.ts';

/** What a subscription asks of the log itself, to check what it is told. */
export interface LogView {
  /** Errors: `position_invalid` when the position lies beyond the end of the log. */
  requireWithin(position: Position): Promise<void>;
  /** False for a checkpoint that is no place in the log. The first one is logged. */
  holds(checkpoint: Position | undefined): Promise<boolean>;
  /**
   * How far the log has no event of ours after the position: its end, where the last records are others'. Rejects when an
   * event of ours is there that the subscription has had the time to deliver and did not.
   */
  considered(position: Position | undefined): Promise<Position | undefined>;
  /** `position_invalid` where `error` means that no record begins at the position; else the error itself. */
  explain(position: Position, error: unknown): Promise<unknown>;
}

interface Looking {
  connection: Connection;
  requiresLeader: boolean;
  signal: AbortSignal;
  logger: StoreLogger | undefined;
}

export function createLogView({ connection: { client, heard }, requiresLeader, signal, logger }: Looking): LogView {
  const asked = { requiresLeader, signal, heard };
  let end: Position | undefined;
  let warned = false;
  let missed: string | undefined;

  async function lookAtEnd(): Promise<Position | undefined> {
    end = await endOfLog(client, asked);
    return end;
  }

  return {
    async requireWithin(position) {
      if (position <= (end ?? '') || position <= ((await lookAtEnd()) ?? '')) return;
      throw positionInvalid(position, `it lies beyond the log's end, which is at ${end ?? 'its beginning'}`);
    },

    async holds(checkpoint) {
      if (checkpoint !== undefined && (checkpoint <= (end ?? '') || checkpoint <= ((await lookAtEnd()) ?? ''))) return true;
      if (!warned) logger?.warn({ checkpoint }, 'the event store sent a checkpoint that is no place in its log (as EventStoreDB 24.2.0 to 24.10.4 do); it is ignored');
      warned = true;
      return false;
    },

    async considered(position) {
      const until = await lookAtEnd();
      if (until === undefined || until <= (position ?? '')) return position;
      const { events } = await collect(client, readFromRequest(position, 2), asked);
      const next = events.map(toStoredEvent).find((event) => event.position > (position ?? ''));
      if (!next) return until;
      if (missed === next.id) throw new Error(`the subscription does not deliver the event at ${next.position}`);
      missed = next.id;
      return position;
    },

    async explain(position, error) {
      if (isInvalidPosition(error)) return positionInvalid(position, 'no record begins there', error);
      if (!isUnexplained(error)) return error;
      const reason: unknown = await collect(client, readFromRequest(position, 1), asked).then(
        () => error,
        (refusal: unknown) => refusal,
      );
      return isInvalidPosition(reason) ? positionInvalid(position, 'no record begins there', reason) : error;
    },
  };
}
