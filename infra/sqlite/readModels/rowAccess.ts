import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { RowAccess } from '../../../shared/projections/applyBatch.ts';
import type { RowKey } from '../../../shared/projections/change.ts';
import { setRow, rowMaps } from '../../../shared/projections/fold.ts';
import type { AnyRemoval } from '../../../shared/projections/project.ts';
import type { Table, Tables } from '../../../shared/readModels/table.ts';
import {
  OWNERS,
  PARKED_STREAMS,
  type Rows,
  type TableName,
} from '../../../shared/readModels/tables.ts';
import { columnNames } from '../../../shared/readModels/statements.ts';
import { rowDecoder, rowEncoder, rowStatements, type SqliteRow } from './statements.ts';

/** Finds one row. */
function rowFinder(database: DatabaseSync, name: string, table: Table) {
  const select = database.prepare(rowStatements(name, table).select);
  // V8 is slow to copy the objects that node:sqlite returns, and each event copies the rows that it changes.
  select.setReturnArrays(true);
  const names = columnNames(table);
  const decode = rowDecoder(table);
  return (key: RowKey): unknown => {
    const values = select.get(...key) as SQLOutputValue[] | undefined;
    if (!values) return undefined;
    const row: SqliteRow = {};
    for (const [index, column] of names.entries()) row[column] = values[index]!;
    return decode(row);
  };
}

function prepareTable(database: DatabaseSync, name: string, table: Table) {
  const { save, remove } = rowStatements(name, table);
  return {
    find: rowFinder(database, name, table),
    save: database.prepare(save),
    remove: database.prepare(remove),
    encode: rowEncoder(table),
  };
}

interface SyncRowAccess extends RowAccess {
  remove: (removals: readonly AnyRemoval[]) => void;
}

/**
 * The rows of one file, with statements that are prepared once. Its methods throw SQLite's errors.
 */
export function createRowAccess(database: DatabaseSync, tables: Tables): SyncRowAccess {
  const names = Object.keys(tables) as TableName[];
  const prepared = Object.fromEntries(
    Object.entries(tables).map(([name, table]) => [name, prepareTable(database, name, table)]),
  ) as Record<TableName, ReturnType<typeof prepareTable>>;
  const parked = prepareTable(database, 'parked_streams', PARKED_STREAMS);
  const deleteParked = database.prepare('DELETE FROM parked_streams WHERE stream = ?');
  const selectParked = database.prepare('SELECT stream FROM parked_streams');
  return {
    parkedAmong: () => new Set(selectParked.all().map(({ stream }) => stream as string)),
    load(keys) {
      const rows = rowMaps();
      for (const { table, key, id } of keys) {
        const row = prepared[table].find(key);
        if (row) setRow(rows, { table, id, row: row as Rows[TableName] });
      }
      return rows;
    },
    save(rows) {
      for (const name of names) {
        const { save, encode } = prepared[name];
        for (const row of rows[name].values()) save.run(...encode(row));
      }
    },
    remove(removals) {
      for (const { table, owner } of removals)
        database.prepare(`DELETE FROM ${table} WHERE ${OWNERS[table]} = ?`).run(owner);
    },
    removeRows(places) {
      for (const { table, key } of places) prepared[table].remove.run(...key);
    },
    unpark(streams) {
      for (const stream of streams) deleteParked.run(stream);
    },
    park(streams) {
      for (const stream of streams) parked.save.run(...parked.encode(stream));
    },
    execute: (sql) => database.exec(sql),
  };
}
