import { requireAppendable } from '../../../shared/eventlog/appendLimits.ts';
import { withCiphertexts } from '../../../shared/eventlog/encryption/ciphertexts.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type {
  AppendResult,
  EncodedEvent,
  EventStore,
  ExpectedRevision,
  Position,
} from '../../../shared/ports/eventStore.ts';
import type { CallWithRetry } from '../connection/callRetry.ts';
import type { ConnectionManager, NodeConnection } from '../connection/connectionManager.ts';
import { commitOf, isValidLogPosition, toEventPosition } from '../read/positions.ts';
import { streamHiddenError } from '../read/reader.ts';
import type { AppendRequest } from './appendMessages.ts';
import { createAppendSender, type SendAppend } from './batchAppend.ts';
import { isUuid, type RecentEventIds } from './recentEventIds.ts';

/** The server's default limit of an append (`MaxAppendSize`). */
const SERVER_LIMIT_BYTES = 1024 * 1024;

/**
 * A server counts an event's type as two bytes per character, in addition to data and metadata
 * (`Event.SizeOnDisk` in EventStore.Core).
 */
const BYTES_PER_TYPE_CHARACTER = 2;

const invalidEvent = (message: string): TurnlogError => new TurnlogError('event_invalid', message);

/**
 * Throws `event_invalid` for events that a server would reject or would not return unchanged, and
 * for revisions that JavaScript can't represent.
 */
function requireValidAppend(expected: ExpectedRevision, events: readonly EncodedEvent[]): void {
  const bytes = requireAppendable(events);
  for (const { id, type } of events) {
    if (!isUuid(id)) throw invalidEvent('The id of an event must be a UUID.');
    if (type === '' || type.startsWith('$'))
      throw invalidEvent(
        'The type of an event must not be empty, nor begin with "$", which EventStoreDB reserves.',
      );
  }
  const serverBytes =
    bytes + events.reduce((sum, { type }) => sum + type.length * BYTES_PER_TYPE_CHARACTER, 0);
  if (serverBytes > SERVER_LIMIT_BYTES)
    throw invalidEvent(
      `The events of one append take ${serverBytes} bytes in EventStoreDB; the limit is ${SERVER_LIMIT_BYTES}.`,
    );
  const revision = expected === 'no_stream' ? -1 : expected;
  if (!Number.isSafeInteger(revision + events.length) || revision < -1)
    throw invalidEvent(`No event can follow revision ${revision}.`);
}

/**
 * How far beyond the confirmed end of the log a position is believed, in bytes. The end is read
 * again once the log has grown by this much.
 */
const BELIEVED_GROWTH = 16n * 1024n * 1024n;

/**
 * Creates a check of the positions in answers to appends. Followers and queries wait for these
 * positions, so one beyond the log would stop both until a restart. Throws `store_unavailable` for
 * such a position, which becomes the trouble of the store. Only the leader's end of the log is compared:
 * other nodes lag.
 */
export function createPositionCheck(
  {
    reportFalsePosition,
    requiresLeader,
  }: Pick<ConnectionManager, 'reportFalsePosition' | 'requiresLeader'>,
  head: EventStore['head'],
): (position: Position) => Promise<void> {
  let confirmedEnd = 0n;

  return async (position) => {
    const commit = commitOf(position);
    if (!isValidLogPosition({ commit, prepare: commit })) throw reportFalsePosition(position);
    const isFar = (): boolean => commit > confirmedEnd + BELIEVED_GROWTH;
    if (!requiresLeader || !isFar()) return;
    try {
      confirmedEnd = commitOf(await head());
    } catch {
      // The append is durable, and does not fail because the end of the log can't be read now.
      return;
    }
    if (isFar()) throw reportFalsePosition(position);
  };
}

/** After a conflict, how many revisions before and after the append are searched for its ids. */
const CONFLICT_SEARCH_RADIUS = 16;

interface Dependencies {
  /** How long an append is tried, in milliseconds. */
  deadlineMs: number;
  connections: ConnectionManager;
  callWithRetry: CallWithRetry;
  recentEventIds: RecentEventIds;
  readStream: EventStore['readStream'];
  head: EventStore['head'];
}

const eventIdReused = (): TurnlogError =>
  new TurnlogError('event_id_reused', 'An event with the same id is in the log at another place.');

/** Creates the port's append. A server may have written an append that it never acknowledged. */
export function createAppend({
  deadlineMs,
  connections,
  callWithRetry,
  recentEventIds,
  readStream,
  head,
}: Dependencies): EventStore['append'] {
  const requireWithinLog = createPositionCheck(connections, head);
  const senders = new WeakMap<NodeConnection, SendAppend>();

  function senderFor(connection: NodeConnection): SendAppend {
    const sender =
      senders.get(connection) ??
      createAppendSender(connection, { requiresLeader: connections.requiresLeader, deadlineMs });
    senders.set(connection, sender);
    return sender;
  }

  /**
   * Determines whether the append conflicts with its own events, written by an earlier attempt, or
   * with other events.
   */
  async function resolveAppendConflict(
    { stream, events }: AppendRequest,
    firstRevision: number,
  ): Promise<AppendResult> {
    const from = Math.max(0, firstRevision - CONFLICT_SEARCH_RADIUS);
    const nearbyEvents = await readStream(stream, {
      direction: 'forwards',
      from,
      limit: events.length + 2 * CONFLICT_SEARCH_RADIUS,
    });
    const byRevision = new Map(nearbyEvents.map((event) => [event.revision, event]));
    const lastEvent = byRevision.get(firstRevision + events.length - 1);
    if (
      lastEvent &&
      events.every(({ id }, index) => byRevision.get(firstRevision + index)?.id === id)
    )
      return { revision: lastEvent.revision, position: lastEvent.position };
    const ids = new Set(events.map(({ id }) => id));
    if (nearbyEvents.some(({ id }) => ids.has(id))) throw eventIdReused();
    throw new TurnlogError(
      'stream_conflict',
      `The stream is not at revision ${firstRevision - 1}.`,
    );
  }

  /** Reads the position, which the answer to a repeated append may lack. */
  async function readAppendResult(stream: string, revision: number): Promise<AppendResult> {
    const [event] = await readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
    if (event?.revision !== revision)
      throw new TurnlogError('stream_conflict', `The stream has no revision ${revision} any more.`);
    return { revision, position: event.position };
  }

  return async (stream, expected, events) => {
    requireValidAppend(expected, events);
    const firstRevision = expected === 'no_stream' ? 0 : expected + 1;
    if (recentEventIds.existElsewhere(stream, firstRevision, events)) throw eventIdReused();
    const request = {
      stream,
      expected,
      events: events.map((event) => withCiphertexts(event, stream)),
    };
    const answer = await callWithRetry(
      { kind: 'append', description: `append to ${stream} ($w)` },
      ({ connection, signal }) => senderFor(connection)(request, signal),
    );
    if (answer.kind === 'conflict') {
      const written = await resolveAppendConflict(request, firstRevision);
      await requireWithinLog(written.position);
      return written;
    }
    if (answer.kind === 'rejected')
      throw new TurnlogError('event_invalid', `EventStoreDB rejects the events: ${answer.reason}.`);
    const { revision, commit } = answer;
    recentEventIds.remember(
      events.map(({ id }, index) => ({
        id,
        stream,
        revision: revision - events.length + 1 + index,
      })),
    );
    // In a deleted stream, a server continues the old revisions regardless of the expected one.
    if (revision !== firstRevision + events.length - 1) throw streamHiddenError(stream);
    const result =
      commit === undefined
        ? await readAppendResult(stream, revision)
        : { revision, position: toEventPosition(commit) };
    await requireWithinLog(result.position);
    recentEventIds.recordAppended(result.position);
    return result;
  };
}
