import type { Client } from 'pg';
import type { ParkedStream } from '../../../shared/ports/readModels.ts';
import { fold, keysOf, rowId, rowMaps, type RowMaps } from '../../../shared/projections/fold.ts';
import type { RowKey } from '../../../shared/projections/change.ts';
import { messageOf, type PlannedEvent } from '../../../shared/projections/plan.ts';
import type { Rows, TableName } from '../../../shared/projections/rows.ts';
import { isRowFailure } from '../failures.ts';
import { keyOf, tableNames, tableSql } from './tables.ts';

/** UTF-16 units of JSON in one statement. Rows with long texts go in several: the server holds each parameter whole. */
const STATEMENT_LENGTH = 16 * 1024 * 1024;

/** JSON arrays of the rows, none much longer than STATEMENT_LENGTH. */
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

/** Applies planned events to the rows of one copy of the read models, inside the transaction that the caller has open. */
export function createRowStore(client: Client, schema: string) {
  async function parkedAmong(plan: readonly PlannedEvent[]): Promise<Set<string>> {
    const streams = [...new Set(plan.map(({ stored }) => stored.stream))];
    const { rows } = await client.query<{ stream: string }>(
      `SELECT stream FROM ${schema}.parked_streams WHERE stream = ANY($1)`,
      [streams],
    );
    return new Set(rows.map(({ stream }) => stream));
  }

  async function park(streams: readonly ParkedStream[]): Promise<void> {
    if (streams.length === 0) return;
    await client.query(
      `INSERT INTO ${schema}.parked_streams (stream, revision, event_type, error) SELECT * FROM json_to_recordset($1::json)
       AS given(stream text, revision bigint, event_type text, error text) ON CONFLICT DO NOTHING`,
      [JSON.stringify(streams)],
    );
  }

  async function load(plan: readonly PlannedEvent[]): Promise<RowMaps> {
    const rows = rowMaps();
    const wanted = Map.groupBy(keysOf(plan), ({ table }) => table);
    for (const [table, keys] of wanted) {
      const names = keyOf(table);
      const json = JSON.stringify(
        keys.map(({ key }) => Object.fromEntries(names.map((name, index) => [name, key[index]]))),
      );
      const found = await client.query<Rows[TableName] & Record<string, unknown>>(
        tableSql(schema, table).load,
        [json],
      );
      for (const row of found.rows)
        (rows[table] as Map<string, Rows[TableName]>).set(
          rowId(names.map((name) => row[name]) as unknown as RowKey),
          row,
        );
    }
    return rows;
  }

  /** A statement to load and one to save for each table, whatever the number of rows. Returns the streams parked. Throws what pg throws. */
  async function applyTogether(plan: readonly PlannedEvent[]): Promise<ParkedStream[]> {
    if (plan.length === 0) return [];
    const parkedBefore = await parkedAmong(plan);
    const { dirty, parked } = fold(plan, await load(plan), parkedBefore);
    for (const table of tableNames)
      for (const json of jsonArrays(dirty[table].values()))
        await client.query(tableSql(schema, table).save, [json]);
    await park(parked);
    return parked;
  }

  async function applyOrPark(event: PlannedEvent): Promise<ParkedStream[]> {
    await client.query('SAVEPOINT one_event');
    let parked: ParkedStream[];
    try {
      parked = await applyTogether([event]);
    } catch (error) {
      if (!isRowFailure(error)) throw error;
      await client.query('ROLLBACK TO one_event');
      const { stream, revision, type } = event.stored;
      parked = [{ stream, revision, event_type: type, error: messageOf(error) }];
      await park(parked);
    }
    await client.query('RELEASE one_event');
    return parked;
  }

  /** For a batch with a row that PostgreSQL refuses: each event by itself, so that only the guilty stream is parked. */
  async function applyOneByOne(plan: readonly PlannedEvent[]): Promise<ParkedStream[]> {
    const parked: ParkedStream[] = [];
    for (const event of plan) parked.push(...(await applyOrPark(event)));
    return parked;
  }

  return { applyTogether, applyOneByOne };
}

export type RowStore = ReturnType<typeof createRowStore>;
