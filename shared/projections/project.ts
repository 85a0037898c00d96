import type { AuditEvent } from '../audit/events.ts';
import { isErasure, type DomainEvent } from '../domain/events.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { streamId, streamKind, type StreamKind } from '../eventlog/streams.ts';
import { isRowChange, type Change, type RowChange } from './change.ts';
import { projectAccount } from '../accounts/projection.ts';
import { projectAgent } from '../agents/projection.ts';
import { projectReplay } from '../replays/projection.ts';
import { projectSession } from '../sessions/projection.ts';
import { projectWebhook } from '../webhooks/projection.ts';
import type { FollowedTable, Rows } from '../readModels/tables.ts';

type EventOfKind<Kind extends StreamKind> = Kind extends 'audit'
  ? AuditEvent
  : Exclude<Extract<DomainEvent, { type: `${Kind}.${string}` }>, AuditEvent>;
type Projection<Event> = (recorded: RecordedEvent, event: Event) => Change[];

/** By the kind of a stream: what its events change. */
const PROJECTIONS: { [Kind in StreamKind]: Projection<EventOfKind<Kind>> } = {
  account: projectAccount,
  agent: projectAgent,
  // It is read where it stands: `events tail`, exports.
  audit: () => [],
  // What it says concerns followers of the log, and no row.
  log: () => [],
  // It is what a request that comes again goes by, and no row.
  request: () => [],
  replay: projectReplay,
  session: projectSession,
  webhook: projectWebhook,
};

/**
 * By the kind of a stream: the table whose row follows every event, so knows its revision. It is the
 * first that each of its events changes.
 */
const STREAM_TABLES = {
  account: 'accounts',
  agent: 'agents',
  replay: 'replays',
  session: 'sessions',
  webhook: 'webhooks',
} as const satisfies Partial<Record<StreamKind, FollowedTable>>;
type StreamTable = (typeof STREAM_TABLES)[keyof typeof STREAM_TABLES];

const tableOf = (stream: string): StreamTable | undefined =>
  (STREAM_TABLES as Readonly<Record<string, StreamTable | undefined>>)[streamKind(stream)];

/**
 * Errors: a plain Error when events between the row and this revision were never seen, its first
 * ones included.
 */
function requireNext(row: { revision: number } | undefined, revision: number): void {
  const due = (row?.revision ?? -1) + 1;
  if (revision > due)
    throw new Error(
      row
        ? `revision ${due} of the stream is missing`
        : `the stream begins at revision ${revision}`,
    );
}

/**
 * What an event changes in the read models, in a stream that it belongs in; pure. The change
 * throws what a row can't follow; an erasure can follow everything.
 */
export function project(recorded: RecordedEvent, event: EventOfKind<StreamKind>): Change[] {
  const changesOf = PROJECTIONS[
    streamKind(recorded.stream) as StreamKind
  ] as Projection<DomainEvent>;
  return changesOf(recorded, event).map((change) => {
    if (!isRowChange(change) || isErasure(event.type)) return change;
    if (change.table !== tableOf(recorded.stream)) return change;
    const apply = change.change as (
      row: Rows[FollowedTable] | undefined,
    ) => Rows[FollowedTable] | undefined;
    const next = (row: Rows[FollowedTable] | undefined): Rows[FollowedTable] | undefined => {
      requireNext(row, recorded.revision);
      return apply(row);
    };
    return { ...change, change: next } as RowChange;
  });
}

/**
 * An event of a type that this version does not know changes nothing, but its stream has come
 * further.
 */
export function passOver({ stream, revision }: RecordedEvent): RowChange[] {
  const table = tableOf(stream);
  const change = <Row extends { revision: number }>(row: Row | undefined): Row | undefined =>
    row && row.revision + 1 === revision ? { ...row, revision } : undefined;
  return table ? [{ table, key: [streamId(stream)], change }] : [];
}
