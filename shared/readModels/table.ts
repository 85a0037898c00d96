/**
 * How a column's values are kept. Text compares byte by byte, and JSON comes back as it was given.
 */
export type Kind = 'text' | 'integer' | 'boolean' | 'json';

interface Column<Value = unknown> {
  kind: Kind;
  nullable: boolean;
  /** Never set: it tells the compiler what a row holds here. */
  value?: Value;
}

export interface Index {
  on: readonly string[];
  /** SQL that both databases understand. */
  where?: string;
}

export interface Table {
  columns: Readonly<Record<string, Column>>;
  /** The columns of the primary key, in the order of `RowKey`. */
  key: readonly string[];
  indexes: readonly Index[];
  /** True when rows hold texts of any length. */
  longRows: boolean;
  /** True when every row is written more than once. */
  rewritten: boolean;
  /** True when what is saved is added to the row that is there: to its columns beside the key. */
  summed: boolean;
}

export type Tables = Readonly<Record<string, Table>>;

/** A row of the table, as queries answer it. */
export type RowOf<Described extends Table> = {
  -readonly [Name in keyof Described['columns']]: Described['columns'][Name] extends Column<
    infer Value
  >
    ? Value
    : never;
};

/** The rows of several tables, by the table's name. */
export type RowsOf<Described extends Tables> = {
  [Name in keyof Described]: RowOf<Described[Name]>;
};

export const text: Column<string> = { kind: 'text', nullable: false };
export const integer: Column<number> = { kind: 'integer', nullable: false };
export const boolean: Column<boolean> = { kind: 'boolean', nullable: false };

/** Text that is one of a few words. */
export const word = <Word extends string>(): Column<Word> => ({ kind: 'text', nullable: false });

/** Any value that JSON can hold. */
export const json = <Value>(): Column<Value> => ({ kind: 'json', nullable: false });

/** The same column, which may also hold null. */
export const orNull = <Value>(column: Column<Value>): Column<Value | null> => ({
  ...column,
  nullable: true,
});

type ColumnName<Columns> = keyof Columns & string;

interface Description<Columns> {
  columns: Columns;
  key: readonly ColumnName<Columns>[];
  indexes?: readonly { on: readonly ColumnName<Columns>[]; where?: string }[];
  longRows?: boolean;
  rewritten?: boolean;
  summed?: boolean;
}

/** Completes a table's description, whose key and indexes can name its columns only. */
export const table = <Columns extends Readonly<Record<string, Column>>>({
  columns,
  key,
  indexes = [],
  longRows = false,
  rewritten = false,
  summed = false,
}: Description<Columns>): Table & { columns: Columns } => ({
  columns,
  key,
  indexes,
  longRows,
  rewritten,
  summed,
});
