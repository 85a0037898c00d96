import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { AppendResult, EventStore } from '../../shared/ports/eventStore.ts';
import type { Append } from './appendMessages.ts';
import { createAppendStream, type AppendTo } from './appendStream.ts';
import type { Connection, Connections } from './connection.ts';
import type { KnownEvents } from './knownEvents.ts';
import { withBoxes } from '../../shared/eventlog/encryption/ciphertexts.ts';
import { requireWritable } from './limits.ts';
import { eventPosition } from './positions.ts';
import type { Retrying } from './retry.ts';
import { streamHidden } from './streamLoss.ts';

/** How far around the place of a conflict the ids of an append are looked for. */
const NEIGHBOURHOOD = 16;

interface Dependencies {
  /** How long an append is tried, in milliseconds. */
  deadlineMs: number;
  connections: Connections;
  retrying: Retrying;
  known: KnownEvents;
  readStream: EventStore['readStream'];
}

const reused = (): TurnlogError =>
  new TurnlogError('event_id_reused', 'An event with the same id is in the log at another place.');

/** Appends as the port has it, over a server that may have written what it never answered. */
export function createAppend({
  deadlineMs,
  connections,
  retrying,
  known,
  readStream,
}: Dependencies): EventStore['append'] {
  const streams = new WeakMap<Connection, AppendTo>();

  function appendStream(connection: Connection): AppendTo {
    const stream =
      streams.get(connection) ??
      createAppendStream(connection, { requiresLeader: connections.requiresLeader, deadlineMs });
    streams.set(connection, stream);
    return stream;
  }

  /** What stands where the append would have gone: our own events, or another's. */
  async function afterConflict({ stream, events }: Append, first: number): Promise<AppendResult> {
    const from = Math.max(0, first - NEIGHBOURHOOD);
    const nearby = await readStream(stream, {
      direction: 'forwards',
      from,
      limit: events.length + 2 * NEIGHBOURHOOD,
    });
    const byRevision = new Map(nearby.map((event) => [event.revision, event]));
    const last = byRevision.get(first + events.length - 1);
    if (last && events.every(({ id }, index) => byRevision.get(first + index)?.id === id))
      return { revision: last.revision, position: last.position };
    const ids = new Set(events.map(({ id }) => id));
    if (nearby.some(({ id }) => ids.has(id))) throw reused();
    throw new TurnlogError('stream_conflict', `The stream is not at revision ${first - 1}.`);
  }

  /** An answer to an append that had been written before need not say where. */
  async function positionOf(stream: string, revision: number): Promise<AppendResult> {
    const [event] = await readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
    if (event?.revision !== revision)
      throw new TurnlogError('stream_conflict', `The stream has no revision ${revision} any more.`);
    return { revision, position: event.position };
  }

  return async (stream, expected, events) => {
    requireWritable(expected, events);
    const first = expected === 'no_stream' ? 0 : expected + 1;
    if (known.standElsewhere(stream, first, events)) throw reused();
    const append = { stream, expected, events: events.map((event) => withBoxes(event, stream)) };
    const answer = await retrying(
      { kind: 'append', name: `append to ${stream} ($w)` },
      ({ connection, signal }) => appendStream(connection)(append, signal),
    );
    if (answer.kind === 'conflict') return afterConflict(append, first);
    if (answer.kind === 'refused')
      throw new TurnlogError('event_invalid', `EventStoreDB refuses the events: ${answer.reason}.`);
    const last = answer.revision;
    known.note(
      events.map(({ id }, index) => ({ id, stream, revision: last - events.length + 1 + index })),
    );
    // A server goes on counting in a stream that others have deleted, whatever was expected of it.
    if (last !== first + events.length - 1) throw streamHidden(stream);
    const result =
      answer.commit === undefined
        ? await positionOf(stream, answer.revision)
        : { revision: answer.revision, position: eventPosition(answer.commit) };
    known.written(result.position);
    return result;
  };
}
