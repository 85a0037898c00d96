import type { Erasure } from '../domain/schema.ts';
import { projectErasure } from '../erasure/projection.ts';
import { isErasure, type DomainEvent } from '../eventlog/eventTypes.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { streamId, streamKind } from '../eventlog/streams.ts';
import { FEATURE_STREAMS, type FeatureStream } from '../features.ts';
import {
  OWNERS,
  TABLES,
  type FollowedTable,
  type OwnedTable,
  type Rows,
} from '../readModels/tables.ts';
import {
  isRowChange,
  type Addition,
  type Difference,
  type Removal,
  type RowChange,
} from './change.ts';

/** The change that one event makes to one row of the read models. */
export type AnyRowChange = RowChange<Pick<Rows, FollowedTable>>;
export type AnyRemoval = Removal<OwnedTable>;
export type Change = AnyRowChange | AnyRemoval | Addition | Difference;

type ProjectedStream = Extract<FeatureStream, { project: unknown }>;
type StreamTable = ProjectedStream['table'];

const isProjected = (stream: FeatureStream): stream is ProjectedStream => 'project' in stream;
const PROJECTED = new Map<string, ProjectedStream>(
  FEATURE_STREAMS.filter(isProjected).map((stream) => [stream.kind, stream]),
);

/**
 * Throws a plain Error when events between the row and this revision are missing, including the
 * first events of the stream.
 */
function requireNext(row: { revision: number } | undefined, revision: number): void {
  const nextRevision = (row?.revision ?? -1) + 1;
  if (revision > nextRevision)
    throw new Error(
      row
        ? `revision ${nextRevision} of the stream is missing`
        : `the stream begins at revision ${revision}`,
    );
}

type AnyRow = Rows[FollowedTable];

/** The row without the texts of its protected columns. */
const withoutTexts = (table: FollowedTable, row: AnyRow): AnyRow => ({
  ...row,
  ...Object.fromEntries(
    Object.entries(TABLES[table].columns).flatMap(([name, column]) =>
      'erased' in column ? [[name, column.erased]] : [],
    ),
  ),
});

/**
 * Completes the changes of an erasure, so that no projection can forget a text: it clears the
 * protected columns of the stream's row, removes the rows that belong to the stream, and notes the
 * erasure.
 */
function eraseTexts(
  recorded: RecordedEvent,
  erasure: Erasure,
  changes: readonly Change[],
): Change[] {
  const owner = streamId(recorded.stream);
  const ownerColumn = `${streamKind(recorded.stream)}_id`;
  const cleared = changes.map((change) => {
    if (!isRowChange(change)) return change;
    const apply = change.change as (row: AnyRow | undefined) => AnyRow | undefined;
    const clear = (row: AnyRow | undefined): AnyRow | undefined => {
      const next = apply(row);
      return next && withoutTexts(change.table, next);
    };
    return { ...change, change: clear } as AnyRowChange;
  });
  const removals = Object.entries(OWNERS).flatMap(([table, column]): AnyRemoval[] =>
    column === ownerColumn ? [{ table: table as OwnedTable, owner }] : [],
  );
  return [...cleared, ...removals, projectErasure(recorded, erasure)];
}

/**
 * Returns the changes that an event of the right stream makes to the read models; pure. A change
 * throws when events between the row and this event are missing, unless the event is an erasure.
 */
export function project(recorded: RecordedEvent, event: DomainEvent): Change[] {
  const stream = PROJECTED.get(streamKind(recorded.stream));
  if (!stream) return [];
  // defineStream has checked that `project` accepts the events of the stream.
  const changesOf = stream.project as (recorded: RecordedEvent, event: DomainEvent) => Change[];
  const changes = changesOf(recorded, event);
  if (isErasure(event.type)) return eraseTexts(recorded, event.data as Erasure, changes);
  return changes.map((change) => {
    if (!isRowChange(change) || change.table !== stream.table) return change;
    const apply = change.change as (row: AnyRow | undefined) => AnyRow | undefined;
    const next = (row: AnyRow | undefined): AnyRow | undefined => {
      requireNext(row, recorded.revision);
      return apply(row);
    };
    return { ...change, change: next } as AnyRowChange;
  });
}

/**
 * The changes of an event whose type is unknown to this version: only the revision of the stream's
 * row advances.
 */
export function projectUnknownEvent({ stream, revision }: RecordedEvent): AnyRowChange[] {
  const table: StreamTable | undefined = PROJECTED.get(streamKind(stream))?.table;
  const change = <Row extends { revision: number }>(row: Row | undefined): Row | undefined =>
    row && row.revision + 1 === revision ? { ...row, revision } : undefined;
  return table ? [{ table, key: [streamId(stream)], change }] : [];
}
