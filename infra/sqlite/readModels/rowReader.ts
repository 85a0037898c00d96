import type { SQLInputValue } from 'node:sqlite';
import type { Bounds, PageOf } from '../../../shared/ports/readModels.ts';
import { TABLES, type Rows, type TableName } from '../../../shared/readModels/tables.ts';
import type { Follower } from './follower.ts';
import type { Found } from './generationReader.ts';
import { pageOf } from './pageOf.ts';
import { rowDecoder } from './statements.ts';

/** Reads the rows of a table; what follows the table, of a page what follows FROM, is the caller's. */
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
    page: (bounds: Bounds, from: string, ...parameters: SQLInputValue[]): PageOf<Rows[Name]> =>
      pageOf(bounds, current().iterate(`SELECT ${table}.* FROM ${from}`, ...parameters), decode),
  };
}
