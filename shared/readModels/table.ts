/**
 * How a column's values are stored. Text compares byte by byte, and JSON is returned as it was stored.
 */
export type Kind = 'text' | 'integer' | 'boolean' | 'json';

interface Column<Value = unknown> {
  kind: Kind;
  nullable: boolean;
  /** The value after an erasure; only of a column that holds protected texts. */
  erased?: Value;
  /** Never set. Carries the type of the column's values. */
  value?: Value;
}

/** A column that holds protected texts, and its value after an erasure. */
interface ProtectedColumn<Value = unknown> extends Column<Value> {
  erased: Value;
}

interface Index {
  on: readonly string[];
  /** SQL for both databases. */
  where?: string;
}

export interface Table {
  columns: Readonly<Record<string, Column>>;
  /** The columns of the primary key, in the order of `RowKey`. */
  key: readonly string[];
  indexes: readonly Index[];
  /** True if rows contain texts of unlimited length. */
  longRows: boolean;
  /** True if every row is updated after its insertion. */
  rewritten: boolean;
  /** True if saved values are added to those of an existing row, except in the key. */
  summed: boolean;
}

export type Tables = Readonly<Record<string, Table>>;

/** A row of the table, as queries return it. */
export type RowOf<Described extends Table> = {
  -readonly [Name in keyof Described['columns']]: Described['columns'][Name] extends Column<
    infer Value
  >
    ? Value
    : never;
};

/** The members of a row that hold protected texts. */
export type TextsOf<Described extends Table> = {
  [
    Name in keyof RowOf<Described> as Described['columns'][Name] extends ProtectedColumn
      ? Name
      : never
  ]: RowOf<Described>[Name];
};

/** The rows of several tables, by the table's name. */
export type RowsOf<Described extends Tables> = {
  [Name in keyof Described]: RowOf<Described[Name]>;
};

export const text: Column<string> = { kind: 'text', nullable: false };
export const integer: Column<number> = { kind: 'integer', nullable: false };
export const boolean: Column<boolean> = { kind: 'boolean', nullable: false };

/** Text with a fixed set of values. */
export const word = <Word extends string>(): Column<Word> => ({ kind: 'text', nullable: false });

/** Any JSON value. */
export const json = <Value>(): Column<Value> => ({ kind: 'json', nullable: false });

/** The same column, nullable. */
export const orNull = <Value>(column: Column<Value>): Column<Value | null> => ({
  ...column,
  nullable: true,
});

/**
 * The same column, with protected texts of the stream that its row belongs to. The projection
 * engine sets it to `erased` when the stream is erased. Tables with owners need no such columns,
 * because an erasure of the owner removes their rows.
 */
export const protectedColumn = <Value>(
  column: Column<Value>,
  erased: Value,
): ProtectedColumn<Value> => ({
  ...column,
  erased,
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

/** Describes a table. Its key and indexes can name only its own columns. */
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

/** The texts in a row of the table. */
export const textsIn = <Described extends Table>(
  { columns }: Described,
  row: TextsOf<Described>,
): TextsOf<Described> =>
  Object.fromEntries(
    Object.entries(columns).flatMap(([name, column]) =>
      'erased' in column ? [[name, (row as Record<string, unknown>)[name]]] : [],
    ),
  ) as TextsOf<Described>;
