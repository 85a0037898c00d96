import type { SqlDatabase } from '../sqlDatabase.ts';
import { bytesOfColumns } from '../statements.ts';
import { TABLES, type FollowedTable } from '../tables.ts';
import { keyOf, type AnyRow, type KeyValues } from './rowReader.ts';

/** Queries of any rows, to compare them with the log. */
export interface IntegrityQueries {
  /** The generation that answers queries. */
  currentGeneration(): Promise<number>;
  /** Keys of a table after one of them, in order. */
  listKeys(table: FollowedTable, after: KeyValues | undefined, limit: number): Promise<KeyValues[]>;
  /** The bytes of a row's texts and JSON, which are not read; undefined if there is no such row. */
  rowBytes(table: FollowedTable, key: KeyValues): Promise<number | undefined>;
  findRow(table: FollowedTable, key: KeyValues): Promise<AnyRow | undefined>;
}

export function createIntegrityQueries({
  generation,
  query,
  find,
  isShown,
}: SqlDatabase): IntegrityQueries {
  const number = query<{ generation: number }>(`SELECT ${generation} AS generation`);
  /** Finds the row of a key, unless an erasure has hidden it. */
  const isRow = (table: FollowedTable): string =>
    `WHERE ${TABLES[table].key.map((column) => `${column} = ? AND `).join('')}${isShown(table)}`;
  return {
    currentGeneration: async () => Number((await number())[0]?.generation),
    async listKeys(table, after, limit) {
      const key = TABLES[table].key.join(', ');
      const where = after ? `WHERE (${key}) > (${after.map(() => '?').join(', ')}) ` : '';
      const sql = `SELECT ${key} FROM {${table}} ${where}ORDER BY ${key} LIMIT ?`;
      const rows = await query<AnyRow>(sql)(...(after ?? []), limit);
      return rows.map((row) => keyOf(table, row));
    },
    async rowBytes(table, values) {
      const sql = `SELECT ${bytesOfColumns(table, TABLES[table])} AS bytes FROM {${table}} ${isRow(table)}`;
      return (await query<{ bytes: number }>(sql)(...values))[0]?.bytes;
    },
    findRow: (table, values) => find(table, isRow(table))(...values),
  };
}
