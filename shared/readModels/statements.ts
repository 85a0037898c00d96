import type { SqlDatabase } from './sqlDatabase.ts';
import type { Kind, Table, Tables } from './table.ts';
import { INDEXED } from '../sessions/tables.ts';
import { PARKED_STREAMS, type OwnedTable } from './tables.ts';

/** The parts of statements that differ between the databases. */
export interface Dialect {
  types: Readonly<Record<Kind, string>>;
  /** Options after the columns in CREATE TABLE. */
  options: (table: Table) => string;
  /** SQL that creates the index of the words in `turn_words`. */
  wordIndex: string;
}

export const columnNames = (table: Table): string[] => Object.keys(table.columns);

/**
 * SQL for the UTF-8 bytes of a row's texts and JSON, in these columns. SQLite takes the lengths of texts
 * from the header of the row.
 */
export const bytesOfColumns = (
  name: string,
  { columns }: Table,
  read: readonly string[] = Object.keys(columns),
): string =>
  read
    .map((column) => ({ kind: columns[column]!.kind, value: `${name}.${column}` }))
    .filter(({ kind }) => kind === 'text' || kind === 'json')
    .map(({ kind, value }) => (kind === 'json' ? `CAST(${value} AS TEXT)` : value))
    .map((value) => `coalesce(octet_length(${value}), 0)`)
    .join(' + ');

/**
 * SQL for the parameter with the owner of rows of the table; null if an erasure has hidden them. It is
 * evaluated once, where a condition on each row would read any number of hidden rows.
 */
export const shownOwner = ({ isShown }: Pick<SqlDatabase, 'isShown'>, table: OwnedTable): string =>
  `(SELECT id FROM (SELECT ? AS id) AS given WHERE ${isShown(table, 'given.id')})`;

function createTable(name: string, table: Table, { types, options }: Dialect): string {
  const columns = Object.entries(table.columns).map(
    ([column, { kind, nullable }]) => `${column} ${types[kind]}${nullable ? '' : ' NOT NULL'}`,
  );
  const indexes = table.indexes.map(
    ({ on, where }, index) =>
      `CREATE INDEX IF NOT EXISTS ${name}_${index + 1} ON ${name} (${on.join(', ')})${where ? ` WHERE ${where}` : ''};`,
  );
  return [
    `CREATE TABLE IF NOT EXISTS ${name} (${columns.join(', ')}, PRIMARY KEY (${table.key.join(', ')})) ${options(table)};`,
    ...indexes,
  ].join('\n');
}

/** SQL that creates all tables and their indexes, unless they exist. */
export const createTables = (tables: Tables, dialect: Dialect): string =>
  Object.entries({ parked_streams: PARKED_STREAMS, indexed: INDEXED, ...tables })
    .map(([name, table]) => createTable(name, table, dialect))
    .concat('turn_words' in tables ? dialect.wordIndex : [])
    .join('\n');

/**
 * The statement that inserts or replaces rows, or adds them to existing ones if the table is summed.
 * `rows` is a VALUES or SELECT clause in the order of the columns.
 */
export function upsert(target: string, table: Table, rows: string): string {
  const names = columnNames(table);
  const unqualified = target.slice(target.lastIndexOf('.') + 1);
  const updates = names
    .filter((name) => !table.key.includes(name))
    .map((name) => `${name} = ${table.summed ? `${unqualified}.${name} + ` : ''}excluded.${name}`);
  return `INSERT INTO ${target} (${names.join(', ')}) ${rows} ON CONFLICT (${table.key.join(', ')}) DO UPDATE SET ${updates.join(', ')}`;
}
