import type { Client } from 'pg';
import type { RowAccess } from '../../../shared/projections/applyBatch.ts';
import type { RowKey } from '../../../shared/projections/change.ts';
import { setRow, rowId, rowMaps, type RowPlace } from '../../../shared/projections/fold.ts';
import type { Tables } from '../../../shared/readModels/table.ts';
import {
  OWNERS,
  PARKED_STREAMS,
  type Rows,
  type TableName,
} from '../../../shared/readModels/tables.ts';
import { rowStatements } from './statements.ts';

/** UTF-16 units of JSON in one statement: the server keeps each parameter in memory. */
const STATEMENT_LENGTH = 16 * 1024 * 1024;

/** Splits rows into JSON arrays of about STATEMENT_LENGTH at most. */
function* jsonArrays(rows: Iterable<object>): Generator<string> {
  let part: string[] = [];
  let length = 0;
  for (const row of rows) {
    const json = JSON.stringify(row);
    if (length + json.length > STATEMENT_LENGTH && part.length > 0) {
      yield `[${part.join(',')}]`;
      part = [];
      length = 0;
    }
    part.push(json);
    length += json.length;
  }
  if (part.length > 0) yield `[${part.join(',')}]`;
}

/** The places by table, with their keys as a JSON array of objects. */
const keysByTable = (places: readonly RowPlace[], tables: Tables) =>
  [...Map.groupBy(places, ({ table }) => table)].map(([table, ofTable]) => {
    const columns = tables[table]!.key;
    const keys = ofTable.map(({ key }) =>
      Object.fromEntries(columns.map((column, index) => [column, key[index]])),
    );
    return { table, columns, keys: JSON.stringify(keys) };
  });

type FoundRow = Rows[TableName] & Record<string, unknown>;

/**
 * The rows of one generation. For each table one statement loads and one saves any number of rows.
 */
export function createRowAccess(client: Client, schema: string, tables: Tables): RowAccess {
  const names = Object.keys(tables) as TableName[];
  const statements = Object.fromEntries(
    Object.entries(tables).map(([name, table]) => [name, rowStatements(schema, name, table)]),
  ) as Record<TableName, ReturnType<typeof rowStatements>>;
  const parked = rowStatements(schema, 'parked_streams', PARKED_STREAMS);

  return {
    async parkedAmong(streams) {
      const { rows } = await client.query<{ stream: string }>(
        `SELECT stream FROM ${schema}.parked_streams WHERE stream = ANY($1)`,
        [streams],
      );
      return new Set(rows.map(({ stream }) => stream));
    },

    async load(places) {
      const rows = rowMaps();
      for (const { table, columns, keys } of keysByTable(places, tables)) {
        const result = await client.query<FoundRow>(statements[table].load, [keys]);
        for (const row of result.rows) {
          const key = columns.map((column) => row[column]) as unknown as RowKey;
          setRow(rows, { table, id: rowId(key), row });
        }
      }
      return rows;
    },

    async save(rows) {
      for (const name of names)
        for (const json of jsonArrays(rows[name].values()))
          await client.query(statements[name].save, [json]);
    },

    async remove(removals) {
      for (const [table, tableRemovals] of Map.groupBy(removals, (removal) => removal.table))
        await client.query(`DELETE FROM ${schema}.${table} WHERE ${OWNERS[table]} = ANY($1)`, [
          tableRemovals.map(({ owner }) => owner),
        ]);
    },

    async removeRows(places) {
      for (const { table, keys } of keysByTable(places, tables))
        await client.query(statements[table].remove, [keys]);
    },

    async unpark(streams) {
      await client.query(`DELETE FROM ${schema}.parked_streams WHERE stream = ANY($1)`, [streams]);
    },

    async park(streams) {
      if (streams.length > 0) await client.query(parked.save, [JSON.stringify(streams)]);
    },

    execute: (sql) => client.query(sql),
  };
}
