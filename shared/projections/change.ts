import type { RowsOf } from '../readModels/table.ts';
import type { SESSION_TABLES } from '../sessions/tables.ts';
import type { USAGE_TABLES } from '../usage/tables.ts';

/** The primary key of a row, in column order: the id, or session_id and turn or token. */
export type RowKey = readonly [string] | readonly [string, number | string];

/**
 * The change that one event makes to one row of a table in `Rows`. `change` is pure. It throws when
 * the event cannot follow the row, and returns undefined when there is nothing to write.
 */
export type RowChange<Rows> = {
  [Table in keyof Rows & string]: {
    table: Table;
    key: RowKey;
    change: (row: Rows[Table] | undefined) => Rows[Table] | undefined;
  };
}[keyof Rows & string];

/** A removal that one event causes: all rows of a table that belong to the owner. */
export interface Removal<Table extends string> {
  table: Table;
  owner: string;
}

/** Finds the previous state of a row that the same event changes. */
export type FindRow<Rows> = <Table extends keyof Rows & string>(
  table: Table,
  key: RowKey,
) => Rows[Table] | undefined;

type SessionRows = RowsOf<typeof SESSION_TABLES>;

/**
 * The amounts that one event adds to usage sums, based on the rows of its session. Nothing is added once
 * the account is erased.
 */
export interface Addition {
  table: 'usage';
  account_id: string;
  amounts: (find: FindRow<SessionRows>) => RowsOf<typeof USAGE_TABLES>['usage'][];
}

/**
 * The rows that one event adds and removes, based on the previous row of its session. They are not
 * loaded.
 */
export interface Difference {
  table: 'session_labels';
  /** About how many rows it changes at most. */
  rows: number;
  difference: (find: FindRow<Pick<SessionRows, 'sessions'>>) => {
    removed: RowKey[];
    added: SessionRows['session_labels'][];
  };
}

export const isRowChange = <Change extends object>(
  change: Change,
): change is Extract<Change, { change: unknown }> => 'change' in change;
export const isRemoval = <Change extends object>(
  change: Change,
): change is Extract<Change, { owner: unknown }> => 'owner' in change;
export const isDifference = <Change extends object>(
  change: Change,
): change is Extract<Change, { difference: unknown }> => 'difference' in change;
export const isAddition = <Change extends object>(
  change: Change,
): change is Extract<Change, { amounts: unknown }> => 'amounts' in change;

/** Returns the row that an event continues. Throws a plain Error when there is none. */
export function requirePresent<Row>(row: Row | undefined, what: string): Row {
  if (!row) throw new Error(`there is no ${what} that this event could follow`);
  return row;
}

/** Throws a plain Error when the row that an event begins exists already. */
export function requireAbsent(row: object | undefined, what: string): void {
  if (row) throw new Error(`the ${what} exists already`);
}
