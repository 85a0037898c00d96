import type { Bounds, PageOf } from '../../../shared/ports/readModels.ts';
import { TABLES, type TableName } from '../../../shared/readModels/tables.ts';
import { columnsOf } from './statements.ts';
import { liveSchema, VERSION } from './version.ts';

const LIVE = liveSchema(VERSION);

export interface Listing {
  table: TableName;
  /** The column that orders the rows, and continues a page. */
  key: string;
  descending?: boolean;
  /** Which rows, with parameters from $1 on. */
  where: string;
  parameters: readonly unknown[];
}

export interface Statement {
  sql: string;
  parameters: unknown[];
}

/** UTF-8 bytes of a row's text and JSON. */
function bytesOf(table: TableName): string {
  const long = Object.entries(TABLES[table].columns).filter(([, { kind }]) =>
    ['text', 'json'].includes(kind),
  );
  return long.map(([name]) => `coalesce(octet_length(${name}::text), 0)`).join(' + ');
}

/**
 * Selects a page, each row with `read`: how many rows were looked at. Goes from row to row along an
 * index and looks at one beyond the page at the most, because all that it looks at is unpacked to
 * be measured. Each row is looked up by itself: of tables that were just filled there are no statistics,
 * and a join went through all rows once for each of the page.
 */
export function selectPage(
  { table, key, descending = false, where, parameters }: Listing,
  { limit, bytes }: Bounds,
): Statement {
  const [rows, size] = [`${LIVE}.${table}`, `(${bytesOf(table)})::bigint`];
  const [most, budget] = [`$${parameters.length + 1}`, `$${parameters.length + 2}`];
  const order = `ORDER BY ${key} ${descending ? 'DESC' : 'ASC'} LIMIT 1`;
  const fits = `place = 1 OR (place <= ${most}::int AND used <= ${budget}::bigint)`;
  return {
    sql: `WITH RECURSIVE page AS (
        (SELECT ${key}, 1 AS place, ${size} AS used FROM ${rows} WHERE ${where} ${order})
      UNION ALL
        SELECT next.* FROM page, LATERAL (
          SELECT ${table}.${key}, page.place + 1, page.used + ${size} FROM ${rows}
          WHERE ${where} AND ${table}.${key} ${descending ? '<' : '>'} page.${key}
          ORDER BY ${table}.${key} ${descending ? 'DESC' : 'ASC'} LIMIT 1
        ) AS next WHERE ${fits}
      )
      SELECT ${columnsOf(table, TABLES[table])}, (SELECT max(place) FROM page) AS read
      FROM page, LATERAL (
        SELECT * FROM ${rows} WHERE ${where} AND ${table}.${key} = page.${key} LIMIT 1
      ) AS ${table} WHERE ${fits} ORDER BY place`,
    parameters: [...parameters, limit, bytes],
  };
}

/**
 * The same of rows that are found together, and are short: one beyond the page is looked at. `also` is
 * what SELECT names beside the columns.
 */
export function selectAtOnce(
  { table, key, descending = false, where, parameters, also }: Listing & { also: string },
  { limit, bytes }: Bounds,
): Statement {
  const [most, budget] = [`$${parameters.length + 1}`, `$${parameters.length + 2}`];
  const order = `ORDER BY ${key} ${descending ? 'DESC' : 'ASC'}`;
  return {
    sql: `WITH found AS (
        SELECT ${table}.* FROM ${LIVE}.${table} WHERE ${where} ${order} LIMIT ${most}::int + 1
      ), page AS (
        SELECT *, row_number() OVER (${order}) AS place, sum(${bytesOf(table)}) OVER (${order}) AS used, count(*) OVER () AS read
        FROM found
      )
      SELECT ${columnsOf(table, TABLES[table])}, read, ${also} FROM page AS ${table}
      WHERE place = 1 OR (place <= ${most}::int AND used <= ${budget}::bigint) ORDER BY place`,
    parameters: [...parameters, limit, bytes],
  };
}

/** The page that a statement of these has found. */
export function toPage<Row extends object>(
  found: readonly (Row & { read: number })[],
): PageOf<Row> {
  const more = (found[0]?.read ?? 0) > found.length;
  return { rows: found.map(({ read: _read, ...row }) => row as unknown as Row), more };
}
