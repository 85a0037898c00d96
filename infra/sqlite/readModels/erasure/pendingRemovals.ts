/**
 * Removes the rows of erased owners. An owner may have any number of rows: the batch of its erasure deletes
 * some of them, and later steps delete the rest, which no query returns meanwhile.
 */
import type { DatabaseSync } from 'node:sqlite';
import { MIB } from '../../../../shared/lib/units.ts';
import type { RowMaps, RowPlace } from '../../../../shared/projections/fold.ts';
import type { AnyRemoval } from '../../../../shared/projections/project.ts';
import { bytesOfColumns } from '../../../../shared/readModels/statements.ts';
import type { SqlDatabase } from '../../../../shared/readModels/sqlDatabase.ts';
import type { Tables } from '../../../../shared/readModels/table.ts';
import {
  OWNERS,
  TABLES,
  type OwnedTable,
  type TableName,
} from '../../../../shared/readModels/tables.ts';
import { rowStatements } from '../statements.ts';

/**
 * The most that a batch of events, or a step between two batches, deletes, in about 5 ms. Its last row may
 * exceed the limit.
 */
const AT_ONCE = { rows: 128, bytes: MIB };

/**
 * The tables that rows are removed from in steps: those whose keys begin with the owner. The other one has
 * the keys of an account, whose number is limited.
 */
const IN_STEPS = new Set<TableName>(
  (Object.keys(OWNERS) as OwnedTable[]).filter((table) => TABLES[table].key[0] === OWNERS[table]),
);
const isInSteps = (table: TableName): table is OwnedTable => IN_STEPS.has(table);

/** SQL condition that is false for the rows of the table whose removal is pending. */
export const isShown: SqlDatabase['isShown'] = (table, given) => {
  if (!isInSteps(table)) return 'true';
  const owner = given ?? `${table}.${OWNERS[table]}`;
  return `NOT EXISTS (SELECT 1 FROM pending_removals WHERE table_name = '${table}' AND owner = ${owner})`;
};

function prepareTable(database: DatabaseSync, name: OwnedTable, tables: Tables) {
  const table = tables[name]!;
  return {
    select: database.prepare(
      `SELECT ${table.key.join(', ')}, ${bytesOfColumns(name, table)} AS bytes FROM ${name} WHERE ${OWNERS[name]} = ?`,
    ),
    remove: database.prepare(rowStatements(name, table).remove),
  };
}

interface Removing {
  database: DatabaseSync;
  tables: Tables;
  /** Deletes all rows at once. */
  removeAll: (removals: readonly AnyRemoval[]) => void;
  /** Called before rows of the table are deleted in steps. False postpones that. */
  mayRemove: (table: TableName) => boolean;
}

/** Runs inside transactions. Its methods throw SQLite's errors. */
export function createPendingRemovals({ database, tables, removeAll, mayRemove }: Removing) {
  let budgetOfBatch = { ...AT_ONCE };
  const prepared = new Map<OwnedTable, ReturnType<typeof prepareTable>>();
  const any = database.prepare('SELECT EXISTS (SELECT 1 FROM pending_removals) AS is_any');
  const first = database.prepare('SELECT owner FROM pending_removals WHERE table_name = ? LIMIT 1');
  const find = database.prepare(
    'SELECT 1 FROM pending_removals WHERE table_name = ? AND owner = ?',
  );
  const add = database.prepare('INSERT OR IGNORE INTO pending_removals VALUES (?, ?)');
  const end = database.prepare('DELETE FROM pending_removals WHERE table_name = ? AND owner = ?');

  function statements(table: OwnedTable): ReturnType<typeof prepareTable> {
    const preparedTable = prepared.get(table) ?? prepareTable(database, table, tables);
    prepared.set(table, preparedTable);
    return preparedTable;
  }

  /** Deletes rows within the budget, which it reduces. Returns false if some remain. */
  function removeSome({ table, owner }: AnyRemoval, budget: typeof AT_ONCE): boolean {
    const { select, remove } = statements(table);
    const keys: (string | number)[][] = [];
    let isComplete = true;
    for (const row of select.iterate(owner)) {
      isComplete = budget.rows > 0 && budget.bytes > 0;
      if (!isComplete) break;
      budget.rows -= 1;
      budget.bytes -= Number(row['bytes']);
      keys.push(tables[table]!.key.map((column) => row[column] as string | number));
    }
    for (const key of keys) remove.run(...key);
    return isComplete;
  }

  /** The next removal that is pending and not postponed. */
  function nextRemoval(): AnyRemoval | undefined {
    for (const table of IN_STEPS as Set<OwnedTable>) {
      const row = first.get(table);
      if (row && mayRemove(table)) return { table, owner: row['owner'] as string };
    }
    return undefined;
  }

  const isAny = (): boolean => any.get()!['is_any'] === 1;
  const isPending = (table: TableName, owner: string): boolean =>
    isInSteps(table) && find.get(table, owner) !== undefined;

  /** Completes the removals of an owner at once. Returns whether there were any. */
  function complete(owner: string): boolean {
    let removes = false;
    for (const table of Object.keys(tables) as TableName[]) {
      if (!isInSteps(table) || !isPending(table, owner)) continue;
      removeAll([{ table, owner }]);
      end.run(table, owner);
      removes = true;
    }
    return removes;
  }

  return {
    isAny,
    /** Call it before a batch of events, which may have several transactions. */
    beginBatch(): void {
      budgetOfBatch = { ...AT_ONCE };
    },
    /** Deletes the rows of these owners, of large ones only some. The removal of the rest is pending then. */
    remove(removals: readonly AnyRemoval[]): void {
      for (const removal of removals) {
        const { table, owner } = removal;
        if (!isInSteps(table)) removeAll([removal]);
        else if (!removeSome(removal, mayRemove(table) ? budgetOfBatch : { rows: 0, bytes: 0 }))
          add.run(table, owner);
      }
    },
    /** The places of rows that are not to be removed. */
    shownAmong: (places: readonly RowPlace[]): readonly RowPlace[] =>
      isAny() ? places.filter(({ table, key }) => !isPending(table, key[0])) : places,
    /**
     * Call it before rows are saved. No command appends to an erased stream, but a row that such an event
     * makes would be deleted with the others. Returns whether rows were deleted.
     */
    completeFor(rows: RowMaps): boolean {
      let removes = false;
      if (!isAny()) return removes;
      const owners = new Set<string>();
      for (const table of IN_STEPS)
        for (const row of (rows[table] as Map<string, object>).values())
          owners.add((row as Record<string, string>)[OWNERS[table as OwnedTable]]!);
      for (const owner of owners) removes = complete(owner) || removes;
      return removes;
    },
    /** True if rows can be deleted now. */
    hasNext: (): boolean => nextRemoval() !== undefined,
    /** Deletes some rows whose removal is pending. */
    removeNext(): void {
      const budget = { ...AT_ONCE };
      for (let next = nextRemoval(); next; next = nextRemoval()) {
        if (!removeSome(next, budget)) return;
        end.run(next.table, next.owner);
      }
    },
  };
}
