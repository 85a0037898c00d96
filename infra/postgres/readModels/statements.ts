import type { QueryResultRow } from 'pg';
import type { Bounds, PageOf } from '../../../shared/readModels/page.ts';
import type { Listing } from '../../../shared/readModels/sqlDatabase.ts';
import { bytesOfColumns, columnNames, upsert } from '../../../shared/readModels/statements.ts';
import type { Table } from '../../../shared/readModels/table.ts';
import { TABLES } from '../../../shared/readModels/tables.ts';
import { DIALECT, liveSchema, VERSION } from './schema.ts';

const LIVE = liveSchema(VERSION);

/** Runs a statement over the live generation; rejects with `store_unavailable`, also while there is none. */
export type ReadRows = <Row extends QueryResultRow>(
  sql: string,
  parameters?: readonly unknown[],
) => Promise<Row[]>;

/** Writes a query of shared/ for the live generation. `first` is the number of its first parameter. */
export function postgresSql(sql: string, first = 1): string {
  let number = first - 1;
  return sql
    .replaceAll(/\{(\w+)(?: INDEXED BY \w+)?\}/g, (_, name: string) => `${LIVE}.${name}`)
    .replaceAll('?', () => `$${(number += 1)}`);
}

/** How many parameters the SQL takes. */
export const countParameters = (sql: string): number => sql.split('?').length - 1;

/** Columns for SELECT. */
export const columnsOf = (
  name: string,
  table: Table,
  columns: readonly string[] = columnNames(table),
): string => columns.map((column) => `${name}.${column}`).join(', ');

/** For FROM: the statement's one parameter as rows with these columns of the table. */
function givenRows(table: Table, columns: readonly string[]): string {
  const typed = columns.map((column) => `${column} ${DIALECT.types[table.columns[column]!.kind]}`);
  return `json_to_recordset($1::json) AS given(${typed.join(', ')})`;
}

/**
 * The statements that load, delete and save many rows of a table at once. Their one parameter is a JSON
 * array: of objects with the key's columns, or of rows. Both sides read and write JSON natively, whatever the
 * columns' types.
 */
export function rowStatements(
  schema: string,
  name: string,
  table: Table,
): { load: string; save: string; remove: string } {
  const names = columnNames(table);
  const isGiven = table.key.map((column) => `${name}.${column} = given.${column}`).join(' AND ');
  return {
    remove: `DELETE FROM ${schema}.${name} USING ${givenRows(table, table.key)} WHERE ${isGiven}`,
    load: `SELECT ${columnsOf(name, table)} FROM ${schema}.${name} JOIN ${givenRows(table, table.key)} USING (${table.key.join(', ')})`,
    save: upsert(
      `${schema}.${name}`,
      table,
      `SELECT ${names.join(', ')} FROM ${givenRows(table, names)}`,
    ),
  };
}

const bytesOfRow = ({ table, columns }: Listing): string =>
  bytesOfColumns(table, TABLES[table], columns);

/** The column that a paging statement adds to each row: how many rows were read. */
interface Read {
  read: number;
}

/** The parameters behind those of the list: of `isContinued` the last key, the limit, the bytes. */
function pageClauses({ from = '', where, key, descending = false }: Listing, isContinued: boolean) {
  const first = countParameters(from) + 1;
  const next = first + countParameters(where);
  const isBeyond = (value: string): string => `${key} ${descending ? '<' : '>'} ${value}`;
  const limit = next + (isContinued ? 1 : 0);
  return {
    where: `${postgresSql(where, first)}${isContinued ? ` AND ${isBeyond(`$${next}`)}` : ''}`,
    isBeyond,
    orderBy: `ORDER BY ${key} ${descending ? 'DESC' : 'ASC'}`,
    limit: `$${limit}::int`,
    bytes: `$${limit + 1}::bigint`,
  };
}

/**
 * Selects a page row by row along an index and reads at most one row beyond it, because every row must
 * be unpacked to be measured. Each row is looked up by itself: a table that was just filled has no
 * statistics, and a join would scan all rows once for each row of the page.
 */
export function selectPage(listing: Listing, isContinued: boolean): string {
  const { table, columns, from = `{${table}}`, key } = listing;
  const { where, isBeyond, orderBy, limit, bytes } = pageClauses(listing, isContinued);
  const [rows, size] = [postgresSql(from), `(${bytesOfRow(listing)})::bigint`];
  const fits = `place = 1 OR (place <= ${limit} AND used <= ${bytes})`;
  return `WITH RECURSIVE page AS (
      (SELECT ${key} AS last_key, 1 AS place, ${size} AS used FROM ${rows} WHERE ${where} ${orderBy} LIMIT 1)
    UNION ALL
      SELECT next.* FROM page, LATERAL (
        SELECT ${key}, page.place + 1, page.used + ${size} FROM ${rows}
        WHERE ${where} AND ${isBeyond('page.last_key')} ${orderBy} LIMIT 1
      ) AS next WHERE ${fits}
    )
    SELECT ${columnsOf(table, TABLES[table], columns)}, (SELECT max(place) FROM page) AS read
    FROM page, LATERAL (
      SELECT ${table}.* FROM ${rows} WHERE ${where} AND ${key} = page.last_key LIMIT 1
    ) AS ${table} WHERE ${fits} ORDER BY place`;
}

/**
 * Selects a page of short rows that are found together; reads one row beyond it. `others` are selected
 * beside the columns of the table.
 */
export function selectPageAtOnce(
  listing: Listing,
  isContinued: boolean,
  others: readonly string[] = [],
): string {
  const { table, columns, from = `{${table}}`, key, descending = false } = listing;
  const { where, orderBy, limit, bytes } = pageClauses(listing, isContinued);
  const order = `ORDER BY list_key ${descending ? 'DESC' : 'ASC'}`;
  return `WITH found AS (
      SELECT ${table}.*, ${key} AS list_key FROM ${postgresSql(from)} WHERE ${where} ${orderBy} LIMIT ${limit} + 1
    ), page AS (
      SELECT *, row_number() OVER (${order}) AS place, sum(${bytesOfRow(listing)}) OVER (${order}) AS used, count(*) OVER () AS read
      FROM found AS ${table}
    )
    SELECT ${columnsOf(table, TABLES[table], columns)}, ${['read', ...others].join(', ')} FROM page AS ${table}
    WHERE place = 1 OR (place <= ${limit} AND used <= ${bytes}) ORDER BY place`;
}

/** The parameters of a paging statement. */
export const pageParameters = <Parameter>(
  parameters: readonly Parameter[],
  { after, limit, bytes }: Bounds & { after?: Parameter },
): (Parameter | number)[] => [...parameters, ...(after === undefined ? [] : [after]), limit, bytes];

/** The page that a paging statement has found. */
export function toPage<Row extends object>(readRows: readonly (Row & Read)[]): PageOf<Row> {
  const more = (readRows[0]?.read ?? 0) > readRows.length;
  return { rows: readRows.map(({ read: _read, ...row }) => row as unknown as Row), more };
}
