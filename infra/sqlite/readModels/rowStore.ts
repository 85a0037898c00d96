import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { ParkedStream } from '../../../shared/ports/readModels.ts';
import { fold, keysOf, rowMaps, type RowMaps } from '../../../shared/projections/fold.ts';
import { messageOf, type PlannedEvent } from '../../../shared/projections/plan.ts';
import type { Rows, TableName } from '../../../shared/projections/rows.ts';
import { isRowFailure } from './failures.ts';
import { rowDecoder, tableNames, tableSql } from './tables.ts';

interface TableAccess {
  select: StatementSync;
  upsert: StatementSync;
  parameters: ReturnType<typeof tableSql>['parameters'];
  decode: (found: Record<string, SQLOutputValue>) => Rows[TableName];
}

function tableAccess(database: DatabaseSync, table: TableName): TableAccess {
  const { select, upsert, parameters } = tableSql(table);
  return {
    select: database.prepare(select),
    upsert: database.prepare(upsert),
    parameters,
    decode: rowDecoder(table),
  };
}

/** Applies planned events to the rows of an open transaction. */
export function createRowStore(database: DatabaseSync) {
  const tables = Object.fromEntries(
    tableNames.map((table) => [table, tableAccess(database, table)]),
  ) as Record<TableName, TableAccess>;
  const selectParked = database.prepare('SELECT stream FROM parked_streams');
  const insertParked = database.prepare(
    'INSERT INTO parked_streams (stream, revision, event_type, error) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
  );

  const parkedStreams = (): Set<string> =>
    new Set(selectParked.all().map((row) => row['stream'] as string));

  const park = ({ stream, revision, event_type, error }: ParkedStream): void => {
    insertParked.run(stream, revision, event_type, error);
  };

  function load(plan: readonly PlannedEvent[]): RowMaps {
    const rows = rowMaps();
    for (const { table, key, id } of keysOf(plan)) {
      const { select, decode } = tables[table];
      const found = select.get(...key);
      if (found) (rows[table] as Map<string, Rows[TableName]>).set(id, decode(found));
    }
    return rows;
  }

  /** One statement for each changed row, whatever the number of events. Returns the streams parked. Throws what SQLite throws. */
  function applyTogether(
    plan: readonly PlannedEvent[],
    parkedBefore: ReadonlySet<string> = parkedStreams(),
  ): ParkedStream[] {
    const { dirty, parked } = fold(plan, load(plan), parkedBefore);
    for (const table of tableNames) {
      const { upsert, parameters } = tables[table];
      for (const row of dirty[table].values()) upsert.run(...parameters(row));
    }
    for (const stream of parked) park(stream);
    return parked;
  }

  function applyOrPark(event: PlannedEvent, parkedBefore: ReadonlySet<string>): ParkedStream[] {
    database.exec('SAVEPOINT one_event');
    try {
      return applyTogether([event], parkedBefore);
    } catch (error) {
      if (!isRowFailure(error)) throw error;
      database.exec('ROLLBACK TO one_event');
      const { stream, revision, type } = event.stored;
      const parked = { stream, revision, event_type: type, error: messageOf(error) };
      park(parked);
      return [parked];
    } finally {
      if (database.isTransaction) database.exec('RELEASE one_event');
    }
  }

  /** For a batch with a row that SQLite refuses: each event by itself, so that only the guilty stream is parked. */
  function applyOneByOne(plan: readonly PlannedEvent[]): ParkedStream[] {
    const known = parkedStreams();
    return plan.flatMap((event) => {
      const parked = applyOrPark(event, known);
      for (const { stream } of parked) known.add(stream);
      return parked;
    });
  }

  return { applyTogether, applyOneByOne };
}
