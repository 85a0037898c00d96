import type { FollowedTable, OwnedTable, Rows, UsageRow } from '../readModels/tables.ts';

/** A row's primary key, in the order of its columns: the id, or session_id and turn or token. */
export type RowKey = readonly [string] | readonly [string, number | string];

/**
 * What one event does to one row. `change` is pure; it throws when the event can't follow the row
 * as it is, and gives undefined where there is nothing to write.
 */
export type RowChange = {
  [Table in FollowedTable]: {
    table: Table;
    key: RowKey;
    change: (row: Rows[Table] | undefined) => Rows[Table] | undefined;
  };
}[FollowedTable];

/** What one event takes away: all rows of a table that belong to somebody. */
export interface Removal {
  table: OwnedTable;
  owner: string;
}

/** A row that the same event changes, as it was before. */
export type FindRow = <Table extends FollowedTable>(
  table: Table,
  key: RowKey,
) => Rows[Table] | undefined;

/** What one event adds to sums, as the rows of its stream say. */
export interface Addition {
  table: 'usage';
  amounts: (find: FindRow) => UsageRow[];
}

export type Change = RowChange | Removal | Addition;

export const isRowChange = (change: Change): change is RowChange => 'change' in change;
export const isRemoval = (change: Change): change is Removal => 'owner' in change;
export const isAddition = (change: Change): change is Addition => 'amounts' in change;

/** The row that an event continues. Errors: a plain Error when there is none. */
export function present<Row>(row: Row | undefined, what: string): Row {
  if (!row) throw new Error(`there is no ${what} that this event could follow`);
  return row;
}

/** Errors: a plain Error when the row that an event begins is there already. */
export function absent(row: object | undefined, what: string): void {
  if (row) throw new Error(`the ${what} exists already`);
}
