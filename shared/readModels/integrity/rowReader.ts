/** Reading all rows of read models, table by table, in the order of their keys. */
import type { Checkpoint, Position } from '../../ports/eventStore.ts';
import type { DamagedRow } from './damagedRows.ts';
import type { Table } from '../table.ts';
import { PARKED_STREAMS, TABLES } from '../tables.ts';

/** The tables that are compared, with their descriptions. */
export const VERIFIED_TABLES = {
  ...TABLES,
  parked_streams: PARKED_STREAMS,
} satisfies Readonly<Record<string, Table>>;
export type VerifiedTable = keyof typeof VERIFIED_TABLES;

/** The values of a row's key, in the order of the table's key columns. */
export type KeyValues = readonly (string | number)[];
export type AnyRow = Readonly<Record<string, unknown>>;

export const keyOf = (table: VerifiedTable, row: AnyRow): KeyValues =>
  VERIFIED_TABLES[table].key.map((column) => row[column] as string | number);

/** The order of both databases: numbers by value, texts by their bytes. */
export function compareKeys(left: KeyValues, right: KeyValues): number {
  for (const [index, one] of left.entries()) {
    const other = right[index]!;
    const order =
      typeof one === 'number'
        ? one - Number(other)
        : Buffer.compare(Buffer.from(one), Buffer.from(String(other)));
    if (order !== 0) return order;
  }
  return 0;
}

/** SQL that selects a page of a table in the order of its keys; `parameter` names the nth parameter. */
export function selectRows(
  target: string,
  table: Table,
  { after, limit }: { after: KeyValues | undefined; limit: number },
  parameter: (index: number) => string,
): string {
  const key = table.key.join(', ');
  const values = after?.map((_, index) => parameter(index + 1)).join(', ');
  const where = values === undefined ? '' : `WHERE (${key}) > (${values}) `;
  return `SELECT ${Object.keys(table.columns).join(', ')} FROM ${target} ${where}ORDER BY ${key} LIMIT ${limit}`;
}

/** A page of rows, and the last event that the rows include. */
export interface RowsAt {
  rows: AnyRow[];
  checkpoint: Checkpoint | undefined;
  /** With rows of `turn_words`: the end of the last turn up to which all are indexed. */
  indexed?: Position | undefined;
  /** With rows of `turn_words`: where an index that the database keeps of them does not fit these rows. */
  misfits?: readonly DamagedRow[];
}

/** The rows that answer queries now. */
export interface LiveRows {
  /**
   * Reads the rows of a table after a key, and the checkpoint, as of one moment. Rejects with
   * `store_unavailable`, also while there are no complete read models.
   */
  read(table: VerifiedTable, after: KeyValues | undefined, limit: number): Promise<RowsAt>;
  close(): Promise<void>;
}
