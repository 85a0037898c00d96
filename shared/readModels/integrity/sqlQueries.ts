import type { SqlDatabase } from '../sqlDatabase.ts';
import { TABLES, type FollowedTable } from '../tables.ts';
import type { AnyRow, KeyValues } from './rowReader.ts';

/** Queries of any rows, to compare them with the log. */
export interface IntegrityQueries {
  /** The generation that answers queries. */
  currentGeneration(): Promise<number>;
  /** Rows of a table after a key, in the order of their keys. */
  listRows(table: FollowedTable, after: KeyValues | undefined, limit: number): Promise<AnyRow[]>;
  findRow(table: FollowedTable, key: KeyValues): Promise<AnyRow | undefined>;
}

export function createIntegrityQueries({
  generation,
  query,
  find,
  list,
  isShown,
}: SqlDatabase): IntegrityQueries {
  const number = query<{ generation: number }>(`SELECT ${generation} AS generation`);
  return {
    currentGeneration: async () => Number((await number())[0]?.generation),
    listRows(table, after, limit) {
      const key = TABLES[table].key.join(', ');
      const where = after ? `WHERE (${key}) > (${after.map(() => '?').join(', ')}) ` : '';
      return list(table, `${where}ORDER BY ${key} LIMIT ?`)(...(after ?? []), limit);
    },
    findRow: (table, values) =>
      find(
        table,
        `WHERE ${TABLES[table].key.map((column) => `${column} = ? AND `).join('')}${isShown(table)}`,
      )(...values),
  };
}
