import type { SQLInputValue } from 'node:sqlite';
import type { Bounds, PageOf } from '../../../shared/ports/readModels.ts';
import { TABLES, type Rows, type TableName } from '../../../shared/readModels/tables.ts';
import type { Follower } from './follower.ts';
import type { Found } from './generationReader.ts';
import { rowDecoder } from './statements.ts';

/** UTF-8 bytes of a row's text. */
const bytesOf = (found: Found): number =>
  Object.values(found).reduce<number>(
    (sum, value) => (typeof value === 'string' ? sum + Buffer.byteLength(value) : sum),
    0,
  );

/** Reads the rows of a table; what follows SELECT is the caller's. */
export function rowReader<Name extends TableName>({ current }: Follower, table: Name) {
  const decode = rowDecoder(TABLES[table]) as (found: Found) => Rows[Name];
  return {
    find(clauses: string, ...parameters: SQLInputValue[]): Rows[Name] | undefined {
      const found = current().get(`SELECT * FROM ${table} ${clauses}`, ...parameters);
      return found && decode(found);
    },
    list: (clauses: string, ...parameters: SQLInputValue[]): Rows[Name][] =>
      current()
        .all(`SELECT * FROM ${table} ${clauses}`, ...parameters)
        .map(decode),
    /** Reads one row beyond the page at the most. */
    page(
      { limit, bytes }: Bounds,
      clauses: string,
      ...parameters: SQLInputValue[]
    ): PageOf<Rows[Name]> {
      const rows: Rows[Name][] = [];
      let read = 0;
      for (const found of current().iterate(
        `SELECT ${table}.* FROM ${table} ${clauses}`,
        ...parameters,
      )) {
        read += bytesOf(found);
        if (rows.length === limit || (rows.length > 0 && read > bytes)) return { rows, more: true };
        rows.push(decode(found));
      }
      return { rows, more: false };
    },
  };
}
