import {
  columnNames,
  createTables,
  upsert,
  type Dialect,
} from '../../../shared/readModels/statements.ts';
import type { Table, Tables } from '../../../shared/readModels/table.ts';

/**
 * Text compares byte by byte, so that pages have one order everywhere, whatever the database's
 * collation; json, not jsonb, gives back what it was given.
 */
const DIALECT: Dialect = {
  types: { text: 'text COLLATE "C"', integer: 'bigint', boolean: 'boolean', json: 'json' },
  // Room in its page lets a row's next version stay out of the indexes.
  options: ({ rewritten }) => (rewritten ? 'WITH (fillfactor = 80)' : ''),
  wordIndex:
    "CREATE INDEX IF NOT EXISTS turn_words_words ON turn_words USING gin (string_to_array(words, ' '));",
};

/** Makes what a generation holds, in the schema that the search path names. */
export const ddlOf = (tables: Tables): string => createTables(tables, DIALECT);

/** Columns for SELECT. */
export const columnsOf = (name: string, table: Table): string =>
  columnNames(table)
    .map((column) => `${name}.${column}`)
    .join(', ');

/** The statement's one parameter as rows with these columns of the table. */
const given = (table: Table, columns: readonly string[]): string => {
  const typed = columns.map((column) => `${column} ${DIALECT.types[table.columns[column]!.kind]}`);
  return `json_to_recordset($1::json) AS given(${typed.join(', ')})`;
};

interface RowStatements {
  load: string;
  save: string;
}

/**
 * The SQL that loads and saves many rows of one table in one statement. Their one parameter is a
 * JSON array: of objects with the key's columns, and of rows. JSON, because both sides write and
 * parse it natively, whatever the columns' types.
 */
export function rowStatements(schema: string, name: string, table: Table): RowStatements {
  const names = columnNames(table);
  return {
    load: `SELECT ${columnsOf(name, table)} FROM ${schema}.${name} JOIN ${given(table, table.key)} USING (${table.key.join(', ')})`,
    save: upsert(
      `${schema}.${name}`,
      table,
      `SELECT ${names.join(', ')} FROM ${given(table, names)}`,
    ),
  };
}
