import type { DomainEvent } from '../domain/events.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { streamKind, streamId, type StreamKind } from '../eventlog/streams.ts';
import type { RowChange } from './change.ts';
import { projectAccount } from './projectAccount.ts';
import { projectAgent } from './projectAgent.ts';
import { projectSession } from './projectSession.ts';
import type { Rows, TableName } from '../readModels/tables.ts';

/** By the kind of a stream: the table whose row follows every event, so knows its revision. */
const STREAM_TABLES = {
  account: 'accounts',
  agent: 'agents',
  session: 'sessions',
} as const satisfies Record<StreamKind, TableName>;
type StreamTable = (typeof STREAM_TABLES)[keyof typeof STREAM_TABLES];

const tableOf = (stream: string): StreamTable | undefined =>
  (STREAM_TABLES as Readonly<Record<string, StreamTable>>)[streamKind(stream)];

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

/** What an event changes in the read models; pure. The change throws what a row can't follow. */
export function project(recorded: RecordedEvent, event: DomainEvent): RowChange[] {
  return changesOf(recorded, event).map((change) => {
    if (change.table !== tableOf(recorded.stream)) return change;
    const apply = change.change as (
      row: Rows[TableName] | undefined,
    ) => Rows[TableName] | undefined;
    const next = (row: Rows[TableName] | undefined): Rows[TableName] | undefined => {
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

function changesOf(recorded: RecordedEvent, event: DomainEvent): RowChange[] {
  switch (event.type) {
    case 'account.opened.v1':
    case 'account.key_issued.v1':
    case 'account.key_revoked.v1':
      return projectAccount(recorded, event);
    case 'agent.created.v1':
    case 'agent.updated.v1':
    case 'agent.deleted.v1':
      return projectAgent(recorded, event);
    case 'session.started.v1':
    case 'session.turn_started.v1':
    case 'session.tool_called.v1':
    case 'session.turn_completed.v1':
    case 'session.turn_failed.v1':
    case 'session.turn_interrupted.v1':
      return projectSession(recorded, event);
    default:
      return event satisfies never;
  }
}
