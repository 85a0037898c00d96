import { isErasure, type DomainEvent } from '../eventlog/eventTypes.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { streamId, streamKind } from '../eventlog/streams.ts';
import { FEATURE_STREAMS, type FeatureStream } from '../features.ts';
import type { FollowedTable, OwnedTable, Rows } from '../readModels/tables.ts';
import { isRowChange, type Addition, type Removal, type RowChange } from './change.ts';

/** What one event does to one row of the read models. */
export type AnyRowChange = RowChange<Pick<Rows, FollowedTable>>;
export type AnyRemoval = Removal<OwnedTable>;
export type Change = AnyRowChange | AnyRemoval | Addition;

type ProjectedStream = Extract<FeatureStream, { project: unknown }>;
type StreamTable = ProjectedStream['table'];

const isProjected = (stream: FeatureStream): stream is ProjectedStream => 'project' in stream;
const PROJECTED = new Map<string, ProjectedStream>(
  FEATURE_STREAMS.filter(isProjected).map((stream) => [stream.kind, stream]),
);

/**
 * Throws a plain Error when events between the row and this revision were never seen, its first
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
 * throws when a row can't follow the event; every row can follow an erasure.
 */
export function project(recorded: RecordedEvent, event: DomainEvent): Change[] {
  const stream = PROJECTED.get(streamKind(recorded.stream));
  if (!stream) return [];
  // defineStream has checked that it takes the stream's events.
  const changesOf = stream.project as (recorded: RecordedEvent, event: DomainEvent) => Change[];
  return changesOf(recorded, event).map((change) => {
    if (!isRowChange(change) || isErasure(event.type)) return change;
    if (change.table !== stream.table) return change;
    const apply = change.change as (
      row: Rows[FollowedTable] | undefined,
    ) => Rows[FollowedTable] | undefined;
    const next = (row: Rows[FollowedTable] | undefined): Rows[FollowedTable] | undefined => {
      requireNext(row, recorded.revision);
      return apply(row);
    };
    return { ...change, change: next } as AnyRowChange;
  });
}

/**
 * An event of a type that this version does not know changes nothing but the revision of its
 * stream's row.
 */
export function passOver({ stream, revision }: RecordedEvent): AnyRowChange[] {
  const table: StreamTable | undefined = PROJECTED.get(streamKind(stream))?.table;
  const change = <Row extends { revision: number }>(row: Row | undefined): Row | undefined =>
    row && row.revision + 1 === revision ? { ...row, revision } : undefined;
  return table ? [{ table, key: [streamId(stream)], change }] : [];
}
