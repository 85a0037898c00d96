import type { PageOf } from '../../../shared/ports/readModels.ts';
import { TABLES, type Rows, type TableName } from '../../../shared/readModels/tables.ts';
import { toPage, type Statement } from './pages.ts';
import type { createReader } from './reader.ts';
import { columnsOf } from './statements.ts';
import { liveSchema, VERSION } from './version.ts';

const LIVE = liveSchema(VERSION);

export type Reader = ReturnType<typeof createReader>;

/** What SELECT names of a table of the live generation. */
export const columns = (table: TableName): string => columnsOf(table, TABLES[table]);

/** Reads the rows of a table; what follows FROM is the caller's. */
export function rowReader<Name extends TableName>({ rows }: Reader, table: Name) {
  const list = (clauses: string, ...parameters: unknown[]): Promise<Rows[Name][]> =>
    rows<Rows[Name]>(`SELECT ${columns(table)} FROM ${LIVE}.${table} ${clauses}`, parameters);
  return {
    list,
    find: async (clauses: string, ...parameters: unknown[]): Promise<Rows[Name] | undefined> =>
      (await list(clauses, ...parameters))[0],
  };
}

/** Reads pages of a table's rows. */
export const pageReader =
  (reader: Reader) =>
  async <Name extends TableName>(
    _table: Name,
    { sql, parameters }: Statement,
  ): Promise<PageOf<Rows[Name]>> =>
    toPage(await reader.rows<Rows[Name] & { read: number }>(sql, parameters));
