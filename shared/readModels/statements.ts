import type { Kind, Table, Tables } from './table.ts';
import { INDEXED } from '../sessions/tables.ts';
import { PARKED_STREAMS } from './tables.ts';

/** What the databases write differently. */
export interface Dialect {
  types: Readonly<Record<Kind, string>>;
  /** What follows the columns in CREATE TABLE. */
  options: (table: Table) => string;
  /** What makes the words of `turn_words` be found. */
  wordIndex: string;
}

export const columnNames = (table: Table): string[] => Object.keys(table.columns);

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

/** The statements that make all tables and their indexes, unless they are there. */
export const createTables = (tables: Tables, dialect: Dialect): string =>
  Object.entries({ parked_streams: PARKED_STREAMS, indexed: INDEXED, ...tables })
    .map(([name, table]) => createTable(name, table, dialect))
    .concat('turn_words' in tables ? dialect.wordIndex : [])
    .join('\n');

/**
 * The statement that saves rows, whether they are there or not, or adds them to those that are. `rows` is the VALUES or SELECT that
 * gives them, in the order of the columns.
 */
export function upsert(target: string, table: Table, rows: string): string {
  const names = columnNames(table);
  const own = target.slice(target.lastIndexOf('.') + 1);
  const updates = names
    .filter((name) => !table.key.includes(name))
    .map((name) => `${name} = ${table.summed ? `${own}.${name} + ` : ''}excluded.${name}`);
  return `INSERT INTO ${target} (${names.join(', ')}) ${rows} ON CONFLICT (${table.key.join(', ')}) DO UPDATE SET ${updates.join(', ')}`;
}
