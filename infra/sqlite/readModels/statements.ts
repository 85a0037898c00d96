import type { SQLOutputValue } from 'node:sqlite';
import { createPage } from '../../../shared/readModels/page.ts';
import type { Listing } from '../../../shared/readModels/sqlDatabase.ts';
import { columnNames, upsert } from '../../../shared/readModels/statements.ts';
import type { Kind, Table } from '../../../shared/readModels/table.ts';

/** A row as SQLite returns it. */
export type SqliteRow = Record<string, SQLOutputValue>;

type Parameter = string | number | null;

/** Writes a query of shared/ for SQLite, where tables and parameters are written as they are. */
export const sqliteSql = (sql: string): string =>
  sql.replaceAll(/\{(\w+(?: INDEXED BY \w+)?)\}/g, '$1');

/** Selects a list; with `isContinued` the last parameter is the key of the row before. */
export function selectListing(
  { table, columns = ['*'], from = table, key, where, descending = false }: Listing,
  isContinued: boolean,
): string {
  const selected = columns.map((column) => `${table}.${column}`).join(', ');
  const after = isContinued ? ` AND ${key} ${descending ? '<' : '>'} ?` : '';
  const order = `${key} ${descending ? 'DESC' : 'ASC'}`;
  return sqliteSql(`SELECT ${selected} FROM ${from} WHERE ${where}${after} ORDER BY ${order}`);
}

function encode(kind: Kind, value: unknown): Parameter {
  if (kind === 'text' || kind === 'integer' || value === null) return value as Parameter;
  return kind === 'json' ? JSON.stringify(value) : Number(value);
}

/** Makes the parameters of a row's upsert. */
export function rowEncoder(table: Table): (row: object) => Parameter[] {
  const kinds = Object.entries(table.columns).map(([name, { kind }]) => [name, kind] as const);
  return (row) => kinds.map(([name, kind]) => encode(kind, row[name as keyof typeof row]));
}

/** Converts what SQLite returned to a row, in place. Columns may be absent. */
export function rowDecoder(table: Table): (raw: SqliteRow) => unknown {
  const columns = Object.entries(table.columns);
  const namesOf = (wanted: Kind): string[] =>
    columns.filter(([, { kind }]) => kind === wanted).map(([name]) => name);
  const [booleans, jsons] = [namesOf('boolean'), namesOf('json')];
  return (raw) => {
    const row: Record<string, unknown> = raw;
    for (const name of booleans) if (typeof row[name] === 'number') row[name] = row[name] === 1;
    for (const name of jsons) if (typeof row[name] === 'string') row[name] = JSON.parse(row[name]);
    return row;
  };
}

/** The statements that load, save and delete one row of the table. */
export function rowStatements(
  name: string,
  table: Table,
): { select: string; save: string; remove: string } {
  const isRow = table.key.map((column) => `${column} = ?`).join(' AND ');
  const values = columnNames(table).map(() => '?');
  return {
    select: `SELECT ${columnNames(table).join(', ')} FROM ${name} WHERE ${isRow}`,
    save: upsert(name, table, `VALUES (${values.join(', ')})`),
    remove: `DELETE FROM ${name} WHERE ${isRow}`,
  };
}

/** UTF-8 bytes of a row's text. */
export const bytesOfRow = (row: SqliteRow): number =>
  Object.values(row).reduce<number>(
    (sum, value) => (typeof value === 'string' ? sum + Buffer.byteLength(value) : sum),
    0,
  );

/** A query, and the bounds of its rows; the row beyond them is read too. */
export interface BoundedQuery {
  sql: string;
  parameters: readonly Parameter[];
  limit: number;
  bytes: number;
}

/** Reads the rows of a query up to its bounds. Throws like the reader. */
export function readRows(
  { iterate }: { iterate: (sql: string, ...parameters: Parameter[]) => Iterable<SqliteRow> },
  { sql, parameters, ...bounds }: BoundedQuery,
): SqliteRow[] {
  const rows: SqliteRow[] = [];
  const { add } = createPage<SqliteRow>(bounds);
  for (const row of iterate(sql, ...parameters)) {
    rows.push(row);
    if (!add(bytesOfRow(row), () => row)) break;
  }
  return rows;
}
